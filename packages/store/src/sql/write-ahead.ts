import { codeOf } from "@tenon/core";

/** What is needed of a connection of `better-sqlite3`. */
interface PragmaConnection {
  pragma(source: string, options?: { simple?: boolean }): unknown;
}

const PAUSE_MS = 10;

function isBusy(error: unknown): boolean {
  return codeOf(error)?.startsWith("SQLITE_BUSY") === true;
}

/**
 * Switches a SQLite file to its write-ahead log with full durability. SQLite does not wait for a lock when several processes switch
 * a new file at the same time, whatever the connection's timeout says: it fails at once, so this tries again.
 *
 * @param timeoutMs milliseconds after which the failure is thrown
 * @throws SqliteError of the driver
 * @example useWriteAheadLog(new Database("orders.sqlite", { timeout: 5_000 }), 5_000);
 */
export function useWriteAheadLog(database: PragmaConnection, timeoutMs: number): void {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      database.pragma("journal_mode = WAL");
      break;
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
  }
  database.pragma("synchronous = FULL");
}
