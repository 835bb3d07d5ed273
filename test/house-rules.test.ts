import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
let house: string;
let found: Map<string, string[]>;

/** Lints a copy of a badly built house with the project's own rules. */
beforeAll(() => {
  house = mkdtempSync(join(tmpdir(), "tenon-house-"));
  cpSync(join(root, "test/fixtures/house"), house, { recursive: true });
  const config = JSON.parse(readFileSync(join(root, "biome.json"), "utf8"));
  delete config.$schema;
  config.vcs.enabled = false;
  writeFileSync(join(house, "biome.json"), JSON.stringify(config));
  writeFileSync(join(house, "packages/core/src/long.ts"), "export {};\n".repeat(501));
  const { stdout } = spawnSync(
    process.execPath,
    [join(root, "node_modules/@biomejs/biome/bin/biome"), "lint", "--reporter=json", "--max-diagnostics=none", "."],
    { cwd: house, encoding: "utf8" },
  );
  found = new Map();
  for (const { category, location } of JSON.parse(stdout).diagnostics) {
    const file = String(location?.path?.file ?? location?.path ?? "")
      .replace(`${house}/`, "")
      .replace(/^\.\//, "");
    found.set(file, [...(found.get(file) ?? []), category]);
  }
});
afterAll(() => rmSync(house, { recursive: true, force: true }));

describe("the house rules bite", () => {
  it.each([
    ["core imports server", "packages/core/src/upward.ts", "lint/style/noRestrictedImports"],
    ["client imports server", "packages/client/src/sideways.ts", "lint/style/noRestrictedImports"],
    ["server imports the SDK of telemetry", "packages/server/src/telemetry.ts", "lint/style/noRestrictedImports"],
    ["telemetry imports server", "packages/telemetry/src/upward.ts", "lint/style/noRestrictedImports"],
    ["server imports LangChain", "packages/server/src/framework.ts", "lint/style/noRestrictedImports"],
    ["the command line imports an application", "packages/cli/src/application.ts", "lint/style/noRestrictedImports"],
    ["a package reaches into another's inside", "packages/server/src/inside.ts", "lint/style/noRestrictedImports"],
    ["a user imports what packages share", "examples/shop/insider.ts", "lint/style/noRestrictedImports"],
    ["two files import each other", "packages/core/src/circle-a.ts", "lint/suspicious/noImportCycles"],
    ["a dependency is not declared", "packages/core/src/undeclared.ts", "lint/correctness/noUndeclaredDependencies"],
    ["a file has more than 500 lines", "packages/core/src/long.ts", "lint/style/noExcessiveLinesPerFile"],
  ])("when %s", (_, file, rule) => expect(found.get(file)).toContain(rule));

  it("and leave a good file alone", () => expect(found.get("packages/server/src/fine.ts")).toBeUndefined());
});

describe("the repository", () => {
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { cwd: root, encoding: "utf8" })
    .trim()
    .split("\n");
  it("names no registry host in its lock file", () => {
    expect(readFileSync(join(root, "package-lock.json"), "utf8")).not.toMatch(/"resolved": "http/);
  });
  it("sets hooks only in tests, since what several tests share is loaded once for all files of a worker", () => {
    const shared = files.filter((file) => /\/test\/.*\.ts$/.test(file) && !file.endsWith(".test.ts"));
    const hooked = /^(?:afterEach|afterAll|beforeEach|beforeAll|vi\.setConfig)\(/m;
    expect(shared.filter((file) => hooked.test(readFileSync(join(root, file), "utf8")))).toEqual([]);
  });
  it("switches no test off", () => {
    const off = files
      .filter((file) => file.endsWith(".test.ts"))
      .filter((file) => /\b(it|test|describe)\.(only|todo)\(/.test(readFileSync(join(root, file), "utf8")));
    expect(off).toEqual([]);
  });
});
