import { statSync } from "node:fs";
import { ConfigError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type Database from "better-sqlite3";
import { CompiledQuery, type DatabaseConnection, type Dialect, type Driver, Kysely, SqliteDialect, sql } from "kysely";
import { createLocalSignals } from "./event/signals.ts";
import { createMemoryClock } from "./lease/memory-clock.ts";
import { checkLeaseMs, LEASE_MS } from "./outcome/outcomes.ts";
import { shareSide } from "./sql/connection.ts";
import { openMachineClock } from "./sql/machine-clock.ts";
import { migrations } from "./sql/migrations/index.ts";
import type { SqlSide, Tables } from "./sql/side.ts";
import { createSqlStores } from "./sql/sql-stores.ts";
import { bringUpToDate, makeFile, openSqliteFile } from "./sql/sqlite-file.ts";
import { toStorageError } from "./sql/storage-error.ts";
import type { Stores } from "./stores.ts";
import { createTableQueue } from "./task/queue.ts";

export { openSqliteFile, type SqliteFileOptions, type SqliteStep } from "./sql/sqlite-file.ts";
export { toStorageError } from "./sql/storage-error.ts";

/** Where the stores of one machine are kept. */
export interface SqliteOptions {
  /** The file, made with its folder when there is none, readable by the owner only. */
  path: string;
  /** Milliseconds a claim on an outcome or the run of a task lasts unless it is renewed. Default 15 seconds. */
  leaseMs?: number;
}

/** What cannot be written fails with the error of the store. */
function tellingWhy(connection: DatabaseConnection): DatabaseConnection {
  return {
    async executeQuery(query) {
      try {
        return await connection.executeQuery(query);
      } catch (error) {
        throw toStorageError(error) ?? error;
      }
    },
    streamQuery: (...given) => connection.streamQuery(...given),
  };
}

/**
 * Kysely's SQLite dialect with write transactions that lock at once: a deferred one that reads and then writes fails with
 * SQLITE_BUSY_SNAPSHOT as soon as another process wrote in between, and no waiting helps it. Where SQLite has rolled back by itself,
 * as it does when the disk is full, the failure that made it do so is the one that is thrown, as a {@link StorageError}.
 */
function immediate(database: Database.Database): Dialect {
  const dialect = new SqliteDialect({ database });
  return {
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver: () => {
      const driver: Driver = dialect.createDriver();
      const acquire = driver.acquireConnection.bind(driver);
      driver.acquireConnection = async () => tellingWhy(await acquire());
      driver.beginTransaction = async (connection) => {
        await connection.executeQuery(CompiledQuery.raw("begin immediate"));
      };
      driver.rollbackTransaction = async (connection) => {
        if (database.inTransaction) await connection.executeQuery(CompiledQuery.raw("rollback"));
      };
      return driver;
    },
  };
}

/** Gives a store access to an open file. */
type Attach = () => SqlSide;

/**
 * Open files by device and inode, so that a file that was deleted and made again is another. Two connections of one process to
 * one file would lock each other out: while one waits for the lock nothing else of the process runs, the other one's commit
 * neither.
 */
const files = new Map<string, Attach>();

function identity(path: string): string {
  const { dev, ino } = statSync(path);
  return `${dev}:${ino}`;
}

function open(path: string, ended: () => void): Attach {
  const database = openSqliteFile(path);
  const db = new Kysely<Tables>({ dialect: immediate(database) });
  let clock: () => number;
  try {
    const history = migrations.map(({ name, statements }) => ({
      name,
      statements: statements(db.schema).map((statement) => statement.sql),
    }));
    bringUpToDate(database, history);
    clock = path === ":memory:" ? createMemoryClock() : openMachineClock(database);
  } catch (error) {
    database.close();
    throw toStorageError(error) ?? error;
  }
  const signals = createLocalSignals();
  return shareSide(path, {
    db: async () => db,
    now: async () => clock(),
    clock: () => sql`${clock()}`,
    moment: () => sql`${clock()}`,
    wall: () => sql`${Date.now()}`,
    lockRows: false,
    lock: async () => undefined,
    signals,
    async close() {
      ended();
      await signals.close();
      await db.destroy();
      database.close(); // Kysely closes only what it has used
    },
  });
}

/** Opens the file, or finds it open. */
function connect(path: string): Attach {
  if (typeof path !== "string" || path === "") {
    throw new ConfigError("openSqlite needs options.path, the file to keep things in", { code: "no_path" });
  }
  if (path === ":memory:") return open(path, () => undefined);
  makeFile(path);
  const name = identity(path);
  const attach = files.get(name) ?? open(path, () => files.delete(name));
  files.set(name, attach);
  return attach;
}

/**
 * All stores in one SQLite file, for the processes of one machine. Every write is on the disk before it is answered
 * (WAL, `synchronous = FULL`). Whatever one process opens on the same file shares one connection.
 * @throws ConfigError for an unknown option, a missing path or a time that is not positive; StorageError for a file that cannot be
 *   written to or a full disk, also by all that its stores do later
 * @example
 * await using stores = openSqlite({ path: "data/tenon.sqlite" });
 * const server = createServer({ name: "orders", version: "1.0.0", store: stores });
 */
export function openSqlite(options: SqliteOptions): Stores {
  checkOptions(options, ["path", "leaseMs"], "openSqlite(options)");
  const leaseMs = checkLeaseMs(options.leaseMs ?? LEASE_MS, "openSqlite(options)");
  return createSqlStores(connect(options.path), leaseMs, createTableQueue);
}
