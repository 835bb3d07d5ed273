import { join } from "node:path";
import { ConfigError, messageOf } from "@tenon/core";
import { openSqliteFile, type SqliteStep } from "@tenon/store/sqlite";
import type Database from "better-sqlite3";

const HISTORY: readonly SqliteStep[] = [
  {
    name: "desk_001",
    statements: [
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
    ],
  },
];

/** Milliseconds of waiting for a lock. */
const BUSY_MS = 5_000;

/**
 * Opens a SQLite file for several processes, with up to 5 s of waiting for a lock.
 * @throws ConfigError `code: "database"` when the file is no database or cannot be opened
 */
export function openSqlite(file: string, history: readonly SqliteStep[] = []): Database.Database {
  try {
    const database = openSqliteFile(file, { history, busyMs: BUSY_MS });
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

/** The desk's own database, `<data>/orders.sqlite`. */
export function openDesk(dataDirectory: string): Database.Database {
  return openSqlite(join(dataDirectory, "orders.sqlite"), HISTORY);
}
