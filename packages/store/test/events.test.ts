import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { openMemory } from "../src/index.ts";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";
import { eventSuite } from "./event-suite.ts";
import { onPostgres } from "./postgres.ts";
import { eventually } from "./task-help.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-events-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

eventSuite("memory", openMemory);
eventSuite("SQLite", () => openSqlite({ path: join(folder, "suite.db") }));

it("events on one SQLite file reach whoever opened it in this process", async () => {
  const path = join(folder, "two.db");
  await using one = openSqlite({ path });
  await using two = openSqlite({ path });
  let heard = 0;
  one.events.subscribe("topic", () => {
    heard += 1;
  });
  await two.events.publish("topic", 1);
  await eventually(() => (heard === 1 ? true : undefined));
  expect([one.events.shared, heard]).toEqual([false, 1]);
});

onPostgres("events", "events", (url, schema) => {
  eventSuite("Postgres", () => openPostgres({ url, schema }));
});
