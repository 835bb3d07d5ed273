import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Files of the schema compiler that a fresh process has loaded after it imported a package. */
function compilerFiles(specifier: string): number {
  const script = `
    await import(${JSON.stringify(specifier)});
    const { createRequire } = await import("node:module");
    const loaded = Object.keys(createRequire(${JSON.stringify(import.meta.url)}).cache);
    console.log(loaded.filter((file) => /[\\\\/]ajv[\\\\/]/.test(file)).length);`;
  const args = ["--conditions=@tenon/source", "--import", "tsx", "--input-type=module", "-e", script];
  return Number(execFileSync(process.execPath, args, { cwd: root, encoding: "utf8" }));
}

describe("a start", () => {
  it.each(["@tenon/core", "@tenon/server", "@tenon/client"])("with %s loads no schema compiler", (specifier) => {
    expect(compilerFiles(specifier)).toBe(0);
  });
  it("is what is measured: the checker itself brings the compiler", () => {
    expect(compilerFiles("@tenon/core/internal/schema-check")).toBeGreaterThan(10);
  });
});
