import { join } from "node:path";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { isProcessGone, orderedCheckpoints, type ThreadLeaseOptions } from "@tenon/agent";
import type { LeaseStore } from "@tenon/store";
import type { Place } from "../database/place.ts";
import { openStores } from "../database/stores.ts";

/** Durable conversations: the checkpointer, and one worker a thread at a time. */
export interface Threads {
  readonly checkpointer: BaseCheckpointSaver;
  readonly leases: LeaseStore;
  readonly lease: ThreadLeaseOptions;
  close(): Promise<void>;
}

/** A turn waits a moment for another window; a process that died on this machine is not waited for. */
const LEASE: ThreadLeaseOptions = { ttlMs: 10_000, waitMs: 3_000, isGone: isProcessGone };

interface Kept {
  readonly checkpointer: BaseCheckpointSaver;
  close(): void | Promise<void>;
}

async function openFile(directory: string): Promise<Kept> {
  const [{ SqliteSaver }, { openSqlite }] = await Promise.all([
    import("@langchain/langgraph-checkpoint-sqlite"),
    import("../database/sqlite.ts"),
  ]);
  const database = openSqlite(join(directory, "threads.sqlite"));
  return { checkpointer: new SqliteSaver(database), close: () => void database.close() };
}

async function openTables(place: Place): Promise<Kept> {
  const [{ PostgresSaver }, { alone, openPool, schemaOf }] = await Promise.all([
    import("@langchain/langgraph-checkpoint-postgres"),
    import("../database/postgres.ts"),
  ]);
  const schema = schemaOf(place);
  const pool = openPool(place);
  const checkpointer = new PostgresSaver(pool, undefined, { schema });
  try {
    await alone(pool, () => checkpointer.setup()); // by itself it fails when two processes begin together
  } catch (error) {
    await pool.end();
    throw error;
  }
  return { checkpointer, close: () => pool.end() };
}

/**
 * Opens the conversations of a place: `threads.sqlite`, and `leases.sqlite` for who works on them; or tables in Postgres.
 * @throws ConfigError `code: "database"`
 */
export async function openThreads(place: Place): Promise<Threads> {
  const kept = await (place.url === undefined ? openFile(place.directory) : openTables(place));
  // a file of its own: two connections of one process to one file lock each other out
  const stores = await openStores(place, "leases.sqlite");
  return {
    checkpointer: orderedCheckpoints(kept.checkpointer), // by whatever clock each of them was saved
    leases: stores.leases,
    lease: LEASE,
    async close() {
      await stores.close();
      await kept.close();
    },
  };
}
