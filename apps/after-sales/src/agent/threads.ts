import { join } from "node:path";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { isProcessGone, orderedCheckpoints, type ThreadLeaseOptions } from "@tenon/agent";
import { TenonError } from "@tenon/core";
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

/** What the conversation cannot be saved for, said to the person. A call of the turn may have had its effect: that is not denied. */
const UNSAVED = {
  disk_full: "the disk is full, so the conversation could not be saved; make room on it and go on",
  read_only: "the conversation could not be saved, since its file is read-only; make it writable and go on",
} as const;

async function openFile(directory: string): Promise<Kept> {
  const [{ SqliteSaver }, { openSqlite }, { toStorageError }] = await Promise.all([
    import("@langchain/langgraph-checkpoint-sqlite"),
    import("../database/sqlite.ts"),
    import("@tenon/store/sqlite"),
  ]);
  const database = openSqlite(join(directory, "threads.sqlite"));
  const saver = new SqliteSaver(database);
  const saying = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (cause) {
      const code = toStorageError(cause)?.code;
      throw code === undefined ? cause : new TenonError(UNSAVED[code], { code, retryable: true, cause });
    }
  };
  const own: Pick<BaseCheckpointSaver, "getTuple" | "put" | "putWrites"> = {
    getTuple: (config) => saying(saver.getTuple(config)), // makes its tables when it is first used
    put: (config, checkpoint, metadata) => saying(saver.put(config, checkpoint, metadata)),
    putWrites: (config, writes, task) => saying(saver.putWrites(config, writes, task)),
  };
  // everything else is the saver's
  const checkpointer = Object.assign(Object.create(saver) as typeof saver, own);
  return { checkpointer, close: () => void database.close() };
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
