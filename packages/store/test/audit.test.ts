import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { openMemory } from "../src/index.ts";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";
import { auditSuite } from "./audit-suite.ts";
import { onPostgres } from "./postgres.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-audit-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

auditSuite("memory", (leaseMs) => openMemory(leaseMs === undefined ? {} : { leaseMs }));
auditSuite("SQLite", (leaseMs) =>
  openSqlite({ path: join(folder, "suite.db"), ...(leaseMs !== undefined && { leaseMs }) }),
);
onPostgres("the audit trail", "audit", (url, schema) => {
  auditSuite("Postgres", (leaseMs) => openPostgres({ url, schema, ...(leaseMs !== undefined && { leaseMs }) }));
});
