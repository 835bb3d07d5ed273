import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { openStores } from "../src/open.ts";
import { onPostgres } from "./postgres.ts";
import { newTask, takeTask } from "./task-help.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-open-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => vi.unstubAllEnvs());

describe("stores where the surroundings say", () => {
  it("are a file of the data directory, which is made, for its owner only", async () => {
    vi.stubEnv("TENON_DATABASE_URL", "");
    const directory = join(folder, "data", "deep");
    const task = newTask();
    {
      await using stores = await openStores({ directory });
      await stores.tasks.create(task);
    }
    expect(existsSync(join(directory, "tenon.sqlite"))).toBe(true);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    await using again = await openStores({ directory });
    await takeTask(again.tasks, task);
    await using other = await openStores({ directory, file: "other.sqlite" });
    expect(await other.tasks.find(task.id)).toBeUndefined();
    expect(readdirSync(directory)).toContain("other.sqlite");
  });
  it("are refused without a place, and with options nobody reads", async () => {
    vi.stubEnv("TENON_DATABASE_URL", "");
    await expect(openStores({ directory: "" })).rejects.toMatchObject({ name: "ConfigError", code: "no_directory" });
    await expect(openStores({ dierctory: "x" } as never)).rejects.toThrow('did you mean "directory"?');
    await expect(openStores({ directory: "x", leaseMs: 0 })).rejects.toThrow("leaseMs must be positive");
  });
  it("say what to install where the driver is missing", async () => {
    // a program in a folder of its own, where nothing is installed
    const alone = join(folder, "alone");
    mkdirSync(alone);
    await build({
      entryPoints: [new URL("../src/open.ts", import.meta.url).pathname],
      outdir: alone,
      outExtension: { ".js": ".mjs" },
      bundle: true,
      splitting: true,
      platform: "node",
      format: "esm",
      conditions: ["@tenon/source"],
      mainFields: ["module", "main"],
      external: ["better-sqlite3", "pg", "pg-boss"],
    });
    const said = (options: object): string => {
      const program = join(alone, "program.mjs");
      const text = `import { openStores } from "./open.mjs";
        await openStores(${JSON.stringify(options)}).catch((error) => console.log(error.code, error.message));`;
      writeFileSync(program, text);
      return execFileSync(process.execPath, [program], { encoding: "utf8", env: { PATH: process.env.PATH } }).trim();
    };
    expect(said({ directory: alone })).toBe(
      "missing_package Keeping things in SQLite needs packages that are not installed: npm install better-sqlite3",
    );
    expect(said({ directory: alone, url: "postgres://x" })).toMatch(
      /^missing_package .*in Postgres .*: npm install pg pg-boss@10$/,
    );
  });
});

onPostgres("stores where the surroundings say", "open", (url, schema) => {
  it("are in Postgres when there is an address, and no file is made", async () => {
    const task = newTask();
    const directory = join(folder, "none");
    {
      await using stores = await openStores({ directory, url, schema });
      await stores.tasks.create(task);
    }
    vi.stubEnv("TENON_DATABASE_URL", url);
    vi.stubEnv("TENON_DATABASE_SCHEMA", schema);
    await using stores = await openStores({ directory });
    await takeTask(stores.tasks, task);
    expect(existsSync(directory)).toBe(false);
  });
});
