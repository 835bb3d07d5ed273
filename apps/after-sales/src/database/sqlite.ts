import { join } from "node:path";
import { ConfigError, messageOf } from "@tenon/core";
import { openSqliteFile, type SqliteStep } from "@tenon/store/sqlite";
import type Database from "better-sqlite3";
import { Kysely, SqliteDialect } from "kysely";
import { type DeskDatabase, type DeskTables, historyOf } from "./tables.ts";

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

/**
 * The desk's own tables in `<directory>/orders.sqlite`. Only single statements run on it: a transaction that waits in the middle
 * would lock out the other server of the same process, which then could not let it go on.
 * @throws ConfigError `code: "database"`
 */
export function openSqliteDesk(directory: string): DeskDatabase {
  const database = openSqlite(join(directory, "orders.sqlite"), historyOf("sqlite"));
  const db = new Kysely<DeskTables>({ dialect: new SqliteDialect({ database }) });
  return {
    db,
    lockRows: false,
    ready: async () => undefined,
    async close() {
      await db.destroy();
      database.close(); // Kysely closes only what it has used
    },
  };
}
