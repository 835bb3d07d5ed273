import { ConfigError, ConnectionError, codeOf, messageOf } from "@tenon/core";
import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from "kysely";
import pg from "pg";

/** How the connections to a database are made. */
export interface PoolOptions {
  readonly config: pg.ClientConfig;
  /** Names the database in errors: the address may hold a password. */
  readonly where: string;
  readonly maxConnections: number;
  readonly connectionTimeoutMs: number;
  /** Milliseconds after which the database ends a statement; a little later we give the connection up. */
  readonly statementTimeoutMs: number;
}

/** Connections for Kysely whose failures are ours: typed, and saying whether something may have happened. */
export interface Pool extends PostgresPool {
  connect(): Promise<PoolClient>;
}

/** One connection. */
export interface PoolClient extends PostgresPoolClient {
  /** @param broken true: closed instead of kept */
  release(broken?: boolean): void;
}

/** Milliseconds at most that the database's own answer to a time limit may take to arrive. */
const GRACE_MS = 5_000;

/** Classes and codes of SQLSTATE that say the connection, not the statement, was at fault. */
const CUT = /^(08...|57P0[1-5]|25P0[34]|53300)$/;
/** The driver's own words for a connection that ended; it gives them no code. */
const ENDED =
  /^(Connection terminated|Client (has encountered|was closed)|timeout exceeded|timeout expired|Cannot use a pool)/;

/** Whether an error is about the connection. */
function isCut(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== undefined && /^[0-9A-Z]{5}$/.test(code))
    return CUT.test(code) || (code.startsWith("E") && isSystem(error));
  return isSystem(error) || ENDED.test(messageOf(error));
}

/** `ECONNRESET` and the like: what the operating system says. */
const isSystem = (error: unknown): boolean => error instanceof Error && ("syscall" in error || "errors" in error);

const TIMED_OUT = "57014";
/** What SQLSTATE says of an address that is wrong, however often it is tried: no such database, no such user or password. */
const TODO: Readonly<Record<string, string>> = {
  "3D000": "make it (createdb), or name another one in the address",
  "28P01": "check user and password in the address",
  "28000": "check the user in the address, and whom the database lets in (pg_hba.conf)",
};

/** What a statement says about itself. */
const isRead = (statement: string): boolean => /^\s*(select|show)\b/i.test(statement);
const begins = (statement: string): boolean => /^\s*(begin|start transaction)\b/i.test(statement);
const ends = (statement: string): boolean => /^\s*(commit|rollback)\s*$/i.test(statement);
const isRollback = (statement: string): boolean => /^\s*rollback\s*$/i.test(statement);

/** Makes connections when they are needed, at most so many; a broken one is replaced by the next query. */
export function createPool({
  config,
  where,
  maxConnections,
  connectionTimeoutMs,
  statementTimeoutMs,
}: PoolOptions): Pool {
  const pool = new pg.Pool({
    ...config,
    max: maxConnections,
    connectionTimeoutMillis: connectionTimeoutMs,
    statement_timeout: statementTimeoutMs,
    // a process that stands still in the middle of a transaction must not hold its rows for ever
    idle_in_transaction_session_timeout: statementTimeoutMs,
    keepAlive: true,
    allowExitOnIdle: true, // as a file does: what is open keeps no process alive
  });
  pool.on("error", () => undefined); // an idle connection ended: the next query opens another, or says why it cannot
  const clients = new WeakMap<pg.PoolClient, PoolClient>();

  function unreachable(error: unknown): Error {
    const todo = TODO[codeOf(error) ?? ""];
    if (todo !== undefined) {
      const said = `The database ${where} lets nobody in by this address: ${messageOf(error)}; ${todo}`;
      return new ConfigError(said, { code: "database_address", cause: error });
    }
    if (!isCut(error)) return error instanceof Error ? error : new Error(String(error));
    const busy = pool.totalCount >= maxConnections && pool.idleCount === 0;
    return new ConnectionError(
      busy
        ? `No connection was free ${where} for ${connectionTimeoutMs} ms: all ${maxConnections} are in use and ` +
            `${pool.waitingCount} callers wait; raise maxConnections or do less at once`
        : `Cannot reach the database ${where}: ${messageOf(error)}`,
      { code: busy ? "busy" : "unreachable", retryable: true, maybeExecuted: false, cause: error },
    );
  }

  function failed(error: unknown, statement: string, inside: boolean): unknown {
    if (codeOf(error) === TIMED_OUT) {
      return new ConnectionError(
        `The database ${where} ended a statement after ${statementTimeoutMs} ms (statementTimeoutMs); it had no effect`,
        { code: "timeout", retryable: true, maybeExecuted: false, cause: error },
      );
    }
    if (!isCut(error)) return error;
    // a transaction that was not committed yet is rolled back by the database
    const maybeExecuted = inside ? ends(statement) : !isRead(statement);
    return new ConnectionError(
      `The connection to the database ${where} was lost: ${messageOf(error)}${maybeExecuted ? "; what was written last may be there" : ""}`,
      { code: "connection_lost", retryable: true, maybeExecuted, cause: error },
    );
  }

  function wrap(raw: pg.PoolClient): PoolClient {
    const before = clients.get(raw);
    if (before) return before;
    let broken = false;
    let inside = false;
    // without a listener a connection that ends between two statements ends the process
    raw.on("error", () => {
      broken = true;
    });

    async function query<R>(statement: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>> {
      if (broken && isRollback(statement)) return { command: "ROLLBACK", rowCount: 0, rows: [] }; // the database did it
      const watch = setTimeout(() => {
        broken = true;
        void raw.end(); // a query that hangs: ends its connection at once
      }, statementTimeoutMs + Math.min(GRACE_MS, statementTimeoutMs));
      try {
        const result = await raw.query(statement, [...parameters]);
        if (begins(statement)) inside = true;
        if (ends(statement)) inside = false;
        // Kysely reads command, rowCount and rows, and pg has them all
        return result as unknown as PostgresQueryResult<R>;
      } catch (error) {
        const typed = failed(error, statement, inside);
        if (isCut(error)) broken = true;
        throw typed;
      } finally {
        clearTimeout(watch);
      }
    }

    const client: PoolClient = {
      // the cursor of Kysely's streams is not used here
      query: query as PoolClient["query"],
      release: (discard = false) => {
        inside = false;
        raw.release(broken || discard);
      },
    };
    clients.set(raw, client);
    return client;
  }

  return {
    async connect() {
      try {
        return wrap(await pool.connect());
      } catch (error) {
        throw unreachable(error);
      }
    },
    async end() {
      if (!pool.ending) await pool.end();
    },
  };
}
