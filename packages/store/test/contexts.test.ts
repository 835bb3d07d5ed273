import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openMemory } from "../src/index.ts";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";
import { contextSuite, memoryBounds } from "./context-suite.ts";
import { onPostgres } from "./postgres.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-contexts-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

contextSuite("memory", () => openMemory().contexts);
memoryBounds();
contextSuite("SQLite", () => openSqlite({ path: join(folder, "suite.db") }).contexts);

describe("SQLite", () => {
  it("keeps a context for another process that opens the file", async () => {
    const path = join(folder, "kept.db");
    const key = { server: "desk", owner: "o", session: "s" };
    await using first = openSqlite({ path });
    await first.contexts.put(key, { user_id: "alice" }, 60_000);
    await using second = openSqlite({ path });
    expect((await second.contexts.get(key))?.context).toEqual({ user_id: "alice" });
  });
});

onPostgres("contexts", "test", (url, schema) => {
  contextSuite("Postgres", () => openPostgres({ url, schema }).contexts);
});
