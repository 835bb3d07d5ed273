import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
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
  it("are heard also after somebody else sent something strange on their channel", async () => {
    await using stores = openPostgres({ url, schema });
    const heard: unknown[] = [];
    stores.events.subscribe("topic", (message) => void heard.push(message));
    await stores.events.publish("topic", 1);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    for (const payload of ["null", "5", "[]", '{"t":{"toString":1},"m":1}', "{", ""]) {
      await client.query("select pg_notify($1, $2)", [`${schema}_signals`, payload]);
    }
    await client.end();
    await stores.events.publish("topic", 2);
    await eventually(() => (heard.length === 2 ? true : undefined));
    expect(heard).toEqual([1, 2]);
  });
});
