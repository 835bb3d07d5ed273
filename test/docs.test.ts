import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { marked, read, root, source } from "./pages.ts";

const pages = readdirSync(join(root, "docs"))
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`);
const snippets = readdirSync(join(root, "docs/snippets")).map((name) => `docs/snippets/${name}`);

describe.each(pages)("%s", (page) => {
  it("shows only code from files, as it is there", () => {
    const blocks = marked(page, "file");
    for (const { name, text } of blocks) expect(text, `${page}: ${name}`).toBe(source(name));
    expect(blocks.length, "a block of code without a marker").toBe([...read(page).matchAll(/^```\w+$/gm)].length);
  });
  it("begins with code", () => {
    if (page === "docs/README.md") return;
    expect(read(page)).toMatch(/^# .+\n\n<!-- file: .+ -->\n\n?```ts\n/);
  });
  it("links to what exists", () => {
    for (const [, target = ""] of read(page).matchAll(/\]\((?!https?:)([^)#]+)/g)) {
      expect(existsSync(join(root, dirname(page), target)), target).toBe(true);
    }
  });
});

/** Milliseconds that a snippet may take where much else runs; it is there to end one that hangs. */
const LIMIT_MS = 60_000;

describe("the snippets", { timeout: LIMIT_MS + 10_000 }, () => {
  it.each(snippets)("%s runs and checks itself", (file) => {
    const args = ["--conditions=@tenon/source", "--import", "tsx", file];
    const { status, stderr } = spawnSync(process.execPath, args, {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: LIMIT_MS,
    });
    expect(status, stderr).toBe(0);
  });
  it("are all shown", () => {
    const shown = new Set(pages.flatMap((page) => marked(page, "file").map(({ name }) => name.split("#")[0])));
    expect(snippets.filter((file) => !shown.has(file))).toEqual([]);
  });
});
