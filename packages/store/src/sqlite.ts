import { closeSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { ConnectionError, checkOptions } from "@tenon/core";
import Database from "better-sqlite3";
import { CompiledQuery, type Dialect, type Driver, Kysely, SqliteDialect } from "kysely";
import { migrations } from "./migrations/index.ts";
import { LEASE_MS, type OutcomeStore } from "./outcomes.ts";
import { createSqlStore, type Tables } from "./sql.ts";

export interface SqliteStoreOptions {
  /** Default 15 seconds. */
  leaseMs?: number;
}

const BUSY_MS = 15_000;

/**
 * Kysely's SQLite dialect with write transactions that lock at once: a deferred one that reads and then writes fails with
 * SQLITE_BUSY_SNAPSHOT as soon as another process wrote in between, and no waiting helps it.
 */
function immediate(database: Database.Database): Dialect {
  const dialect = new SqliteDialect({ database });
  return {
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver: () => {
      const driver: Driver = dialect.createDriver();
      driver.beginTransaction = async (connection) => {
        await connection.executeQuery(CompiledQuery.raw("begin immediate"));
      };
      return driver;
    },
  };
}

/** In one exclusive transaction, so that of several processes that start together one migrates and the others find it done. */
function migrate(database: Database.Database, db: Kysely<Tables>): void {
  database
    .transaction(() => {
      database.exec("create table if not exists tenon_migrations (name text primary key, at text not null)");
      const done = new Set(database.prepare("select name from tenon_migrations").pluck().all());
      for (const { name, statements } of migrations) {
        if (done.has(name)) continue;
        for (const { sql } of statements(db.schema)) database.exec(sql);
        database.prepare("insert into tenon_migrations values (?, ?)").run(name, new Date().toISOString());
      }
    })
    .exclusive();
}

/** One file as this process has it open. */
interface Opened {
  readonly database: Database.Database;
  readonly db: Kysely<Tables>;
  users: number;
}

/**
 * Open files by device and inode, so that a file that was deleted and made again is another. Two connections of one process to one file would lock each other out: while one waits for the lock
 * nothing else of the process runs, the other one's commit neither.
 */
const files = new Map<string, Opened>();

function identity(path: string): string {
  const { dev, ino } = statSync(path);
  return `${dev}:${ino}`;
}

function open(path: string): Opened {
  const database = new Database(path, { timeout: BUSY_MS });
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL");
  const db = new Kysely<Tables>({ dialect: immediate(database) });
  try {
    migrate(database, db);
  } catch (error) {
    database.close();
    throw error;
  }
  return { database, db, users: 0 };
}

/**
 * Outcomes in a SQLite file, for the processes of one machine. Every write is on the disk before it is answered
 * (WAL, `synchronous = FULL`). Stores of one process on the same file share one connection.
 * @param path made with its folder when there is none, readable by the owner only
 * @example const server = createServer({ name: "orders", version: "1.0.0", store: createSqliteStore("data/outcomes.db") })
 */
export function createSqliteStore(path: string, options: SqliteStoreOptions = {}): OutcomeStore {
  checkOptions(options, ["leaseMs"], "createSqliteStore(path, options)");
  const memory = path === ":memory:";
  if (!memory) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    closeSync(openSync(path, "a", 0o600)); // SQLite gives its side files the same mode
  }
  const name = memory ? undefined : identity(path);
  const opened = (name !== undefined && files.get(name)) || open(path);
  opened.users += 1;
  if (name !== undefined) files.set(name, opened);
  let closed = false;
  return createSqlStore({
    leaseMs: options.leaseMs ?? LEASE_MS,
    async db() {
      if (closed) throw new ConnectionError(`The store ${path} is closed`, { code: "store_closed" });
      return opened.db;
    },
    now: async () => Date.now(),
    lockRows: false,
    async close() {
      if (closed) return;
      closed = true;
      opened.users -= 1;
      if (opened.users > 0) return;
      if (name !== undefined) files.delete(name);
      await opened.db.destroy();
      opened.database.close(); // Kysely closes only what it has used
    },
  });
}
