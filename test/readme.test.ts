import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import "./built.ts";
import { marked, read, root } from "./pages.ts";

describe.each(["README.md", "README.zh-CN.md"])("%s", (page) => {
  it("shows files as they are", () => {
    const files = marked(page, "file");
    expect(files.map((file) => file.name)).toEqual([
      "examples/first-steps/server.ts",
      "examples/first-steps/client.ts",
    ]);
    for (const { name, text } of files) expect(text).toBe(read(name));
  });
  it("links to what exists", () => {
    const links = [...read(page).matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, target = ""]) => target);
    expect(links.length).toBeGreaterThan(8);
    for (const target of links) expect(existsSync(join(root, dirname(page), target)), target).toBe(true);
  });
  it("names tests that exist", () => {
    for (const [, path = ""] of read(page).matchAll(/`((?:packages|apps)\/[\w./-]+)`/g)) {
      expect(existsSync(join(root, path)), path).toBe(true);
    }
  });
});

describe("the first example", () => {
  it("prints what the README says", () => {
    const [output] = marked("README.md", "output");
    const [command = "", ...args] = output?.name.split(" ") ?? [];
    const run = spawnSync(command, args, {
      cwd: join(root, "examples/first-steps"),
      encoding: "utf8",
      shell: process.platform === "win32",
    });
    expect(run.stdout).toBe(output?.text);
    expect(run.status).toBe(0);
  });
});

describe("the Chinese README", () => {
  it("mirrors the English one: same headings, tables and blocks", () => {
    const shape = (page: string): string[] =>
      read(page)
        .split("\n")
        .flatMap((line) =>
          /^#+ /.test(line)
            ? ["heading"]
            : /^\|/.test(line)
              ? ["row"]
              : /^```/.test(line)
                ? ["block"]
                : /^!\[/.test(line)
                  ? ["picture"]
                  : [],
        );
    expect(shape("README.zh-CN.md")).toEqual(shape("README.md"));
  });
});
