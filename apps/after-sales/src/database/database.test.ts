import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { createOrderBook } from "../servers/order-book.ts";
import { createOutbox } from "../servers/outbox.ts";
import { openDatabase } from "./database.ts";
import type { Place } from "./place.ts";
import { noteStateKeys } from "./shared-keys.ts";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "tenon-database-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A place of its own on Postgres. */
function schemaOn(url: string): Place {
  const schema = `desk_database_${process.pid}_${Date.now()}`;
  onTestFinished(async () => {
    const client = new pg.Client(url);
    await client.connect();
    await client.query(`drop schema if exists ${schema} cascade`);
    await client.end();
  });
  return { directory: folder(), url, schema };
}

/** The database as several processes open it, at the same moment. */
async function open(place: Place, processes: number) {
  const opened = await Promise.all(Array.from({ length: processes }, () => openDatabase(place)));
  onTestFinished(async () => void (await Promise.all(opened.map((one) => one.close()))));
  await Promise.all(opened.map((one) => one.ready()));
  return opened;
}

function suite(where: () => Place): void {
  it("has the first orders once, however many open it at the same moment", async () => {
    const [first] = await open(where(), 4);
    expect(await first?.db.selectFrom("orders").select("id").orderBy("id").execute()).toHaveLength(4);
  });

  it("refunds an order once; the same key gets the first outcome, any other is told that it is refunded", async () => {
    const books = (await open(where(), 3)).map(createOrderBook);
    const about = { reason: "r", callerId: "c" };
    const asked = Array.from({ length: 12 }, (_, i) => ({ ...about, idempotencyKey: `key-${i % 6}` }));
    const outcomes = await Promise.all(asked.map(async (request, i) => books[i % 3]?.refund("ORD-001", request)));
    const refunded = outcomes.filter((outcome) => outcome && "refund" in outcome);
    expect(refunded).toHaveLength(2); // both that brought the key that was first
    expect(refunded[0]).toEqual(refunded[1]);
    expect(refunded[0]).toMatchObject({ order: { id: "ORD-001", amount: 29_900 }, refund: { amount: 29_900 } });
    for (const outcome of outcomes) {
      if (outcome && "refused" in outcome) expect(outcome.refused.reason).toBe("already");
    }
  });

  it("refuses what is unknown, in delivery or above a limit, and does nothing", async () => {
    const [database] = await open(where(), 1);
    if (!database) throw new Error("not opened");
    const book = createOrderBook(database);
    const about = { reason: "r", callerId: "c", idempotencyKey: "k", limit: 50_000 };
    for (const [id, reason] of [
      ["ORD-999", "unknown"],
      ["ORD-004", "not_delivered"],
      ["ORD-003", "too_large"],
    ] as const) {
      expect(await book.refund(id, about)).toMatchObject({ refused: { reason } });
      expect(await book.check(id, about)).toMatchObject({ refused: { reason } });
    }
    expect(await book.check("ORD-002", about)).toMatchObject({ ready: { id: "ORD-002" } });
    expect(await database.db.selectFrom("refunds").selectAll().execute()).toEqual([]);
  });

  it("hands a message of one key to the gateway until it is taken, and not again", async () => {
    const [database] = await open(where(), 1);
    if (!database) throw new Error("not opened");
    const taken: number[] = [];
    let away = true;
    const outbox = createOutbox(database, async ({ id }) => {
      if (away) throw new Error("away");
      taken.push(id);
    });
    const send = () =>
      outbox.send({ phone: "18812345678", content: "c" }, { callerId: "c", idempotencyKey: "one message" });
    expect(await send()).toMatchObject({ sent: false });
    away = false;
    expect([await send(), await send()]).toMatchObject([{ sent: true }, { sent: true }]);
    expect(taken).toHaveLength(1);
  });
}

describe("the desk's tables in a file", () => {
  suite(() => ({ directory: folder() }));

  it("are those of a directory that was made before, with what is in it", async () => {
    const directory = folder();
    const file = new Database(join(directory, "orders.sqlite"));
    file.exec(`create table tenon_migrations (name text primary key, at text not null);
      insert into tenon_migrations values ('desk_001', '2026-11-01T00:00:00.000Z');
      create table orders (id text primary key, status text not null, amount integer not null);
      create table refunds (order_id text primary key references orders (id), amount integer not null, reason text not null,
        caller_id text not null, idempotency_key text not null, created_at text not null);
      create table sms_outbox (id integer primary key, phone text not null, content text not null, caller_id text not null,
        idempotency_key text not null unique, status text not null, created_at text not null);
      insert into orders values ('ORD-900', 'delivered', 1234);
      insert into refunds values ('ORD-900', 1234, 'r', 'c', 'k', '2026-11-02T00:00:00.000Z')`);
    file.close();
    const [database] = await open({ directory }, 1);
    if (!database) throw new Error("not opened");
    const found = await createOrderBook(database).find("ORD-900");
    expect(found).toMatchObject({ order: { amount: 1234 }, refund: { at: "2026-11-02T00:00:00.000Z" } });
    expect(await database.db.selectFrom("orders").select("id").execute()).toEqual([{ id: "ORD-900" }]);
  });
});

const url = process.env.TENON_TEST_DATABASE_URL;
if (url === undefined)
  it.skip("the desk's tables in Postgres: set TENON_TEST_DATABASE_URL to run them", () => undefined);
else {
  describe("the desk's tables in Postgres", () => {
    suite(() => schemaOn(url));

    it("hand a message over once, although two processes have it at the same moment", async () => {
      const [one, two] = await open(schemaOn(url), 2);
      const taken: number[] = [];
      const slow = async ({ id }: { id: number }): Promise<void> => {
        await new Promise((resolve) => setTimeout(resolve, 100));
        taken.push(id);
      };
      const about = { callerId: "c", idempotencyKey: "one message" };
      const message = { phone: "18812345678", content: "c" };
      const outboxes = [one, two].flatMap((database) => (database ? [createOutbox(database, slow)] : []));
      const sent = await Promise.all(outboxes.map((outbox) => outbox.send(message, about)));
      expect(sent).toMatchObject([{ sent: true }, { sent: true }]);
      expect(taken).toHaveLength(1);
    });

    it("note which key questions are sealed with, and take only processes that know it", async () => {
      const [database] = await open(schemaOn(url), 1);
      if (!database) throw new Error("not opened");
      await noteStateKeys(database, "order", ["a"]);
      await noteStateKeys(database, "order", ["a", "b"]);
      await noteStateKeys(database, "order", ["b", "a"]);
      await expect(noteStateKeys(database, "order", ["a"])).rejects.toMatchObject({ code: "state_keys" });
      await noteStateKeys(database, "order", ["a", "b"]);
      await noteStateKeys(database, "notification", ["c"]); // of its own
    });
  });
}
