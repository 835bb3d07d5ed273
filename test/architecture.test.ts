import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
const links = [...page.matchAll(/\[([^\]]+)\]\(([^)#\s]+)\)/g)].map(([, text = "", path = ""]) => ({ text, path }));

describe("ARCHITECTURE.md", () => {
  it.each([...new Set(links.map(({ path }) => path))])("%s exists", (path) => {
    expect(existsSync(join(root, path))).toBe(true);
  });

  const named = links.flatMap(({ text, path }) =>
    path.endsWith(".ts") ? [...text.matchAll(/`([\w$]+)`/g)].map(([, name = ""]) => ({ name, path })) : [],
  );
  it.each(named)("$name is declared in $path", ({ name, path }) => {
    const declared = new RegExp(`\\b(?:function|class|const|interface|async) ${name}\\b`);
    expect(readFileSync(join(root, path), "utf8")).toMatch(declared);
  });

  it("follows the call: at least a dozen places for each of the two walks", () => {
    const walks = page.split("\n## ").filter((part) => part.startsWith("Walk"));
    expect(walks.map((walk) => walk.match(/^\| \d+ /gm)?.length ?? 0).every((hops) => hops >= 12)).toBe(true);
    expect(walks).toHaveLength(2);
  });

  it.each(["server", "client", "agent"])("names every folder of %s, and none it has not", (name) => {
    const row = page.split("\n").find((line) => line.startsWith(`| \`${name}\` `)) ?? "";
    const told = [...row.matchAll(/`([\w-]+)`/g)].map(([, folder = ""]) => folder).slice(1);
    const there = readdirSync(join(root, "packages", name, "src"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
    expect(there.filter((folder) => !told.includes(folder) && !["testing", "development"].includes(folder))).toEqual(
      [],
    );
    expect(told.filter((folder) => !there.includes(folder))).toEqual([]);
  });
});
