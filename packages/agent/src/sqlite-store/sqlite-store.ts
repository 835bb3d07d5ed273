import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchOperation,
} from "@langchain/langgraph";
import { ConfigError, ConnectionError, isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type Database from "better-sqlite3";
import { openMemoryFile } from "./sqlite-store-file.ts";
import { checkNamespace, filterOf, matches } from "./sqlite-store-match.ts";

/** When items are forgotten. Times are minutes, as in LangGraph's `PostgresStore`. */
export interface SqliteStoreTtl {
  /** Minutes an item lives after it was put, unless `put` says otherwise. */
  readonly defaultTtl?: number;
  /** Counts `defaultTtl` anew whenever an item is read. Default false. */
  readonly refreshOnRead?: boolean;
  /** Minutes between two sweeps; expired items are never returned, swept or not. Default 60; 0 for none. */
  readonly sweepIntervalMinutes?: number;
}

/** Options of `SqliteStore`. */
export interface SqliteStoreOptions {
  /** When items are forgotten. Default: never. */
  readonly ttl?: SqliteStoreTtl;
}

/** What goes with a single item. */
export interface SqlitePutOptions {
  /** Minutes until the item is forgotten. */
  readonly ttl?: number;
}

type Put = PutOperation & { readonly options?: SqlitePutOptions };

interface Row {
  readonly path: string;
  readonly key: string;
  readonly value: string;
  readonly created_at: number;
  readonly updated_at: number;
}

const MINUTE_MS = 60_000;
const SWEEP_MINUTES = 60;
/** Node's timers fire at once, over and over, when they are set to more. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** @throws ConfigError `code: "ttl"` */
function checkMinutes(name: string, minutes: number | undefined): void {
  if (minutes === undefined || minutes >= 0) return;
  throw new ConfigError(`${name} is a number of minutes, 0 or more, given ${minutes}`, { code: "ttl" });
}

const itemOf = (row: Row): Item => ({
  namespace: row.path.split(":"),
  key: row.key,
  value: JSON.parse(row.value),
  createdAt: new Date(row.created_at),
  updatedAt: new Date(row.updated_at),
});

/**
 * LangGraph's long-term memory in a SQLite file: what an agent knows of a user, in every thread and after every restart, for the
 * processes of one machine. The same contract as `InMemoryStore` and `PostgresStore`, without search by meaning: `query` is an
 * error, never silently ignored. A batch is one transaction, in order: later operations see earlier ones, and all or nothing is
 * written. `search` gives what was written last first; a filter reads the items below the prefix one by one.
 *
 * Values are kept as JSON. The file may be the checkpointer's, but not the one of `openSqlite`, whose transactions take a while:
 * two connections of one process to it would lock each other out.
 *
 * @example
 * const store = new SqliteStore("data/memory.db");
 * await store.put(["user_prefs"], "u_001", { language: "en" });
 * const agent = createAgent({ model, tools, store });
 */
export class SqliteStore extends BaseStore {
  readonly #path: string;
  readonly #ttl: SqliteStoreTtl;
  #database: Database.Database | undefined;
  #sweeper: NodeJS.Timeout | undefined;
  #stopped = false;

  /**
   * @param path the file, made with its folder at first use, readable by the owner only; `":memory:"` keeps nothing
   * @throws ConfigError for an unknown option, a missing path, or minutes below 0
   */
  constructor(path: string, options: SqliteStoreOptions = {}) {
    super();
    checkOptions(options, ["ttl"], "new SqliteStore(path, options)");
    checkOptions(options.ttl ?? {}, ["defaultTtl", "refreshOnRead", "sweepIntervalMinutes"], "options.ttl");
    if (typeof path !== "string" || path === "") {
      throw new ConfigError("new SqliteStore(path) needs the path of a file", { code: "no_path" });
    }
    checkMinutes("options.ttl.defaultTtl", options.ttl?.defaultTtl);
    checkMinutes("options.ttl.sweepIntervalMinutes", options.ttl?.sweepIntervalMinutes);
    this.#path = path;
    this.#ttl = options.ttl ?? {};
  }

  /** Opens the file; the first operation does so too. */
  override start(): void {
    this.#open();
  }

  /** Closes the file. What comes later is refused. */
  override stop(): void {
    this.#stopped = true;
    clearInterval(this.#sweeper);
    this.#database?.close();
    this.#database = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
  }

  /**
   * Keeps a value, or replaces it.
   * @param index ignored: nothing is searched by meaning here
   * @param options.ttl minutes until it is forgotten
   * @throws ConfigError `code: "namespace"` or `"value"`
   */
  override async put(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    index?: false | string[],
    options?: SqlitePutOptions,
  ): Promise<void> {
    if (namespace[0] === "langgraph") {
      throw new ConfigError('The root "langgraph" of a namespace is reserved; choose another', { code: "namespace" });
    }
    const operation: Put = { namespace, key, value, ...(index && { index }), ...(options && { options }) };
    await this.batch([operation]);
  }

  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const database = this.#open();
    // synchronous from begin to commit: nothing else of this process comes in between
    const work = database.transaction(() => operations.map((operation) => this.#run(database, operation)));
    // whoever writes takes the lock at once: one that reads first fails when another process wrote in between
    const writes = this.#ttl.refreshOnRead === true || operations.some((operation) => "value" in operation);
    const results = writes ? work.immediate() : work.deferred();
    return results as OperationResults<Op>; // one result per operation, of its kind: see #run
  }

  /** Deletes what has expired and returns how many items; the store also does this on its own now and then. */
  async sweepExpiredItems(): Promise<number> {
    return this.#open().prepare("delete from tenon_memory where expires_at <= ?").run(Date.now()).changes;
  }

  #open(): Database.Database {
    if (this.#stopped) throw new ConnectionError(`The store ${this.#path} is stopped`, { code: "store_closed" });
    if (this.#database) return this.#database;
    this.#database = openMemoryFile(this.#path);
    const minutes = this.#ttl.sweepIntervalMinutes ?? SWEEP_MINUTES;
    if (minutes > 0) {
      // a sweep that fails is made up for by the next one
      this.#sweeper = setInterval(
        () => void this.sweepExpiredItems().catch(() => undefined),
        Math.min(minutes * MINUTE_MS, LONGEST_TIMER_MS),
      );
      this.#sweeper.unref();
    }
    return this.#database;
  }

  #run(database: Database.Database, operation: Operation): unknown {
    if ("namespacePrefix" in operation) return this.#search(database, operation);
    if ("key" in operation) {
      return "value" in operation ? this.#put(database, operation) : this.#get(database, operation);
    }
    return this.#namespaces(database, operation);
  }

  #expiresAt(now: number, minutes = this.#ttl.defaultTtl): number | null {
    return minutes ? now + minutes * MINUTE_MS : null;
  }

  #put(database: Database.Database, { namespace, key, value, options }: Put): void {
    checkNamespace(namespace);
    checkOptions(options ?? {}, ["ttl"], "put(namespace, key, value, index, options)");
    checkMinutes("options.ttl", options?.ttl);
    const path = namespace.join(":");
    if (value === null) {
      database.prepare("delete from tenon_memory where path = ? and key = ?").run(path, key);
      return;
    }
    if (!isRecord(value)) {
      throw new ConfigError(`The value of an item is an object, given ${typeof value} for "${key}"`, { code: "value" });
    }
    const now = Date.now();
    // an item that has expired but was not swept yet is another one
    database
      .prepare(
        `insert into tenon_memory (path, key, value, created_at, updated_at, expires_at)
         values (:path, :key, :value, :now, :now, :expiresAt)
         on conflict (path, key) do update set
           value = :value, updated_at = :now, expires_at = :expiresAt,
           created_at = case when expires_at <= :now then :now else created_at end`,
      )
      .run({ path, key, value: JSON.stringify(value), now, expiresAt: this.#expiresAt(now, options?.ttl) });
  }

  #get(database: Database.Database, { namespace, key }: GetOperation): Item | null {
    checkNamespace(namespace);
    const row = database
      .prepare<[string, string, number], Row>(
        "select * from tenon_memory where path = ? and key = ? and (expires_at is null or expires_at > ?)",
      )
      .get(namespace.join(":"), key, Date.now());
    if (!row) return null;
    this.#refresh(database, [row]);
    return itemOf(row);
  }

  #search(database: Database.Database, operation: SearchOperation): Item[] {
    const { namespacePrefix, filter, limit = 10, offset = 0, query } = operation;
    if (namespacePrefix.length > 0) checkNamespace(namespacePrefix);
    if (query) {
      throw new ConfigError(
        "SqliteStore does not search by meaning or by words: leave `query` out and use `filter`, or take PostgresStore with an index",
        { code: "no_index" },
      );
    }
    const wanted = filterOf(filter);
    const path = namespacePrefix.join(":");
    // everything below "a:b" sorts between "a:b:" and "a:b;", the character after the colon
    const rows = database
      .prepare<[string, string, string, string, number], Row>(
        `select * from tenon_memory
         where (? = '' or path = ? or (path >= ? and path < ?)) and (expires_at is null or expires_at > ?)
         order by updated_at desc, rowid desc`,
      )
      .iterate(path, path, `${path}:`, `${path};`, Date.now());
    const found: Array<{ row: Row; item: Item }> = [];
    let skipped = 0;
    for (const row of rows) {
      if (found.length >= limit) break;
      const item = itemOf(row);
      if (!wanted(item.value)) continue;
      if (skipped < offset) skipped += 1;
      else found.push({ row, item });
    }
    this.#refresh(
      database,
      found.map(({ row }) => row),
    );
    return found.map(({ item }) => item);
  }

  #namespaces(database: Database.Database, operation: ListNamespacesOperation): string[][] {
    const { matchConditions = [], maxDepth, limit = 100, offset = 0 } = operation;
    const paths = database
      .prepare<[number], string>("select distinct path from tenon_memory where expires_at is null or expires_at > ?")
      .pluck()
      .iterate(Date.now());
    const found = new Set<string>();
    for (const path of paths) {
      const namespace = path.split(":");
      if (matchConditions.every((condition) => matches(condition, namespace))) {
        found.add(namespace.slice(0, maxDepth).join(":"));
      }
    }
    return [...found]
      .sort()
      .slice(offset, offset + limit)
      .map((path) => path.split(":"));
  }

  #refresh(database: Database.Database, rows: readonly Row[]): void {
    const expiresAt = this.#expiresAt(Date.now());
    if (!this.#ttl.refreshOnRead || expiresAt === null) return;
    const update = database.prepare("update tenon_memory set expires_at = ? where path = ? and key = ?");
    for (const { path, key } of rows) update.run(expiresAt, path, key);
  }
}
