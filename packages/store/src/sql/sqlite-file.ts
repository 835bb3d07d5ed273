import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { anything, checkOptions, milliseconds, type OptionChecks } from "@tenon/core/internal";
import Database from "better-sqlite3";
import { toStorageError } from "./storage-error.ts";
import { useWriteAheadLog } from "./write-ahead.ts";

/** Milliseconds that a connection waits for a lock. */
export const BUSY_MS = 15_000;

/** One step of the history of a file's tables. Never edited once released: a change is another step with a name of its own. */
export interface SqliteStep {
  /** Says once and for all which step it is. */
  readonly name: string;
  /** SQL, in order. */
  readonly statements: readonly string[];
}

/** How a file is opened. */
export interface SqliteFileOptions {
  /** What its tables have come to, oldest first. Default: no tables. */
  history?: readonly SqliteStep[];
  /** Milliseconds of waiting for a lock. Default 15,000. */
  busyMs?: number;
}

const OPTIONS: OptionChecks<SqliteFileOptions> = { history: anything, busyMs: milliseconds };

/** Makes the file, with its folder, where there is none: what is in it is for its owner only. */
export function makeFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, "a", 0o600)); // SQLite gives its side files the same mode
}

/**
 * Brings the tables of a file up to date. In one exclusive transaction, so that of several processes that start together one
 * does it and the others find it done.
 */
export function bringUpToDate(database: Database.Database, history: readonly SqliteStep[]): void {
  database
    .transaction(() => {
      database.exec("create table if not exists tenon_migrations (name text primary key, at text not null)");
      const done = new Set(database.prepare("select name from tenon_migrations").pluck().all());
      for (const { name, statements } of history) {
        if (done.has(name)) continue;
        for (const sql of statements) database.exec(sql);
        database.prepare("insert into tenon_migrations values (?, ?)").run(name, new Date().toISOString());
      }
    })
    .exclusive();
}

/**
 * Opens a SQLite file for several processes: made with its folder when there is none and readable by its owner only, with the
 * write-ahead log and full durability, its tables brought up to date by one process at a time.
 *
 * @param path the file, or `:memory:`
 * @throws ConfigError for an unknown option or a time that is none; StorageError for a full disk or a file that is read-only;
 *   SqliteError of the driver for a file that is no database, or stays locked
 * @example
 * const database = openSqliteFile("data/orders.sqlite", {
 *   history: [{ name: "orders", statements: ["create table orders (id text primary key)"] }],
 * });
 */
export function openSqliteFile(path: string, options: SqliteFileOptions = {}): Database.Database {
  checkOptions(options, OPTIONS, "openSqliteFile(path, options)");
  const { history = [], busyMs = BUSY_MS } = options;
  if (path !== ":memory:") makeFile(path);
  const database = new Database(path, { timeout: busyMs });
  try {
    useWriteAheadLog(database, busyMs);
    if (history.length > 0) bringUpToDate(database, history);
    return database;
  } catch (error) {
    database.close();
    throw toStorageError(error) ?? error;
  }
}
