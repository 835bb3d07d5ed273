import { join } from "node:path";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { isProcessGone, type ThreadLeaseOptions } from "@tenon/agent";
import type { LeaseStore } from "@tenon/store";
import { openSqlite as openStores } from "@tenon/store/sqlite";
import { openSqlite } from "../servers/database.ts";

/** Durable conversations: the checkpointer, and one worker a thread at a time. */
export interface Threads {
  readonly checkpointer: SqliteSaver;
  readonly leases: LeaseStore;
  readonly lease: ThreadLeaseOptions;
  close(): Promise<void>;
}

/** A turn waits a moment for another window; a process that died on this machine is not waited for. */
const LEASE: ThreadLeaseOptions = { ttlMs: 10_000, waitMs: 3_000, isGone: isProcessGone };

/** Opens `<data>/threads.sqlite`, and `<data>/leases.sqlite` for who works on them. */
export function openThreads(dataDirectory: string): Threads {
  const database = openSqlite(join(dataDirectory, "threads.sqlite"));
  // a file of its own: two connections of one process to one file lock each other out
  const stores = openStores({ path: join(dataDirectory, "leases.sqlite") });
  return {
    checkpointer: new SqliteSaver(database),
    leases: stores.leases,
    lease: LEASE,
    async close() {
      await stores.close();
      database.close();
    },
  };
}
