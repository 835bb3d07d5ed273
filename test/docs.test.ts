import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { marked, read, root, source } from "./pages.ts";
import { programs } from "./programs.ts";

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
const run = promisify(execFile);

describe("the snippets", { timeout: LIMIT_MS + 10_000 }, () => {
  let built: Map<string | undefined, string>;
  beforeAll(async () => {
    const made = await programs(snippets.filter((file) => file.endsWith(".ts")).map((file) => join(root, file)));
    built = new Map(made.map((path) => [`docs/snippets/${basename(path, ".mjs")}.ts`, path]));
  });
  it.concurrent.each(snippets)("%s runs and checks itself", async (file) => {
    // one that starts other files with its own flags must have the flags that make them run
    const handsOn = readFileSync(join(root, file), "utf8").includes("process.execArgv");
    const args = handsOn ? ["--conditions=@tenon/source", "--import", "tsx", file] : [built.get(file) ?? file];
    await run(process.execPath, args, { cwd: root, timeout: LIMIT_MS });
  });
  it("are all shown", () => {
    const shown = new Set(pages.flatMap((page) => marked(page, "file").map(({ name }) => name.split("#")[0])));
    expect(snippets.filter((file) => !shown.has(file))).toEqual([]);
  });
});
