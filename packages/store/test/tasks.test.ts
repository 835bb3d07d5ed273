import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { openMemory, type Stores } from "../src/index.ts";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";
import { onPostgres } from "./postgres.ts";
import { taskRecoverySuite } from "./task-recovery-suite.ts";
import { taskSuite } from "./task-suite.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-tasks-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Everything tasks must do. @param open with leases of `leaseMs` */
function suites(kind: string, open: (leaseMs: number) => Stores): void {
  taskSuite(kind, open);
  taskRecoverySuite(kind, open);
}

suites("memory", (leaseMs) => openMemory({ leaseMs }));
suites("SQLite", (leaseMs) => openSqlite({ path: join(folder, "suite.db"), leaseMs }));

onPostgres("tasks", "tasks", (url, schema) => {
  suites("Postgres", (leaseMs) => openPostgres({ url, schema, leaseMs }));
});
