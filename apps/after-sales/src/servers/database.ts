import { join } from "node:path";
import { ConfigError, messageOf } from "@tenon/core";
import { useWriteAheadLog } from "@tenon/store/sqlite";
import Database from "better-sqlite3";

/** Numbered changes of the schema, never edited once landed. */
const MIGRATIONS: readonly string[] = [
  `create table orders (
     id text primary key,
     status text not null check (status in ('delivered', 'in_delivery')),
     amount integer not null check (amount > 0) -- fen
   );
   create table refunds (
     order_id text primary key references orders (id), -- at most one refund an order
     amount integer not null,
     reason text not null,
     caller_id text not null,
     idempotency_key text not null,
     created_at text not null
   );
   create table sms_outbox (
     id integer primary key,
     phone text not null,
     content text not null,
     caller_id text not null,
     idempotency_key text not null unique,
     status text not null check (status in ('queued', 'sent', 'failed')),
     created_at text not null
   );
   insert into orders (id, status, amount) values
     ('ORD-001', 'delivered', 29900), ('ORD-002', 'delivered', 50000),
     ('ORD-003', 'delivered', 249900), ('ORD-004', 'in_delivery', 2900);`,
];

/** Milliseconds of waiting for a lock. */
const BUSY_MS = 5_000;

/**
 * Opens a SQLite file for several processes: write-ahead log, full durability, up to 5 s of waiting for a lock.
 * @throws ConfigError `code: "database"` when the file is no database or cannot be opened
 */
export function openSqlite(file: string): Database.Database {
  try {
    const database = new Database(file, { timeout: BUSY_MS });
    useWriteAheadLog(database, BUSY_MS);
    database.pragma("foreign_keys = ON");
    return database;
  } catch (cause) {
    const why = messageOf(cause);
    throw new ConfigError(`${file} cannot be opened: ${why}. Restore it, or choose another directory with --data`, {
      code: "database",
      cause,
    });
  }
}

/** The desk's own database, `<data>/orders.sqlite`, with its schema brought up to date by one process at a time. */
export function openDesk(dataDirectory: string): Database.Database {
  const database = openSqlite(join(dataDirectory, "orders.sqlite"));
  // immediate: the second process waits here and then finds the work done
  database
    .transaction(() => {
      const done = Number(database.pragma("user_version", { simple: true }));
      for (const migration of MIGRATIONS.slice(done)) database.exec(migration);
      database.pragma(`user_version = ${MIGRATIONS.length}`);
    })
    .immediate();
  return database;
}
