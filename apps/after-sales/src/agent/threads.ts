import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { isRecord, TenonError } from "@tenon/core";
import { openSqlite } from "../servers/database.ts";

/** Another process is working on the thread right now. */
export class ThreadBusyError extends TenonError {
  constructor(threadId: string) {
    super(`Thread ${threadId} is being worked on by another process; try again in a moment`, {
      code: "busy",
      retryable: true,
    });
  }
}

/** A lease is renewed every third of this time; a process that died on another machine is waited for no longer. */
const LEASE_MS = 15_000;
/** How long a turn waits for another process to finish before it gives up. */
const WAIT_MS = 3_000;

/** Whether a lease is held by a process of this machine that is no more. */
function isDead(holder: string): boolean {
  const [host, pid] = holder.split(" ");
  if (host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return isRecord(error) && error.code === "ESRCH";
  }
}

/** Durable conversations: the checkpointer, and one worker a thread at a time. */
export interface Threads {
  readonly checkpointer: SqliteSaver;
  /** @throws ThreadBusyError when another process holds the thread for longer than a few seconds */
  exclusive<T>(threadId: string, work: () => Promise<T>): Promise<T>;
  close(): void;
}

/** Opens `<data>/threads.sqlite`. */
export function openThreads(dataDirectory: string): Threads {
  const database = openSqlite(join(dataDirectory, "threads.sqlite"));
  database.exec(
    "create table if not exists thread_leases (thread_id text primary key, holder text not null, expires_at integer not null)",
  );
  const acquire = database.prepare<[string, string, number, number]>(
    `insert into thread_leases (thread_id, holder, expires_at) values (?, ?, ?)
     on conflict (thread_id) do update set holder = excluded.holder, expires_at = excluded.expires_at
     where thread_leases.expires_at < ?`,
  );
  const renew = database.prepare<[number, string, string]>(
    "update thread_leases set expires_at = ? where thread_id = ? and holder = ?",
  );
  const holderOf = database.prepare<[string], { holder: string }>(
    "select holder from thread_leases where thread_id = ?",
  );
  const release = database.prepare<[string, string]>("delete from thread_leases where thread_id = ? and holder = ?");
  return {
    checkpointer: new SqliteSaver(database),
    async exclusive(threadId, work) {
      const holder = `${hostname()} ${process.pid} ${randomUUID()}`;
      const deadline = Date.now() + WAIT_MS;
      while (acquire.run(threadId, holder, Date.now() + LEASE_MS, Date.now()).changes === 0) {
        const other = holderOf.get(threadId)?.holder;
        if (other !== undefined && isDead(other)) {
          release.run(threadId, other);
          continue;
        }
        if (Date.now() > deadline) throw new ThreadBusyError(threadId);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      const heartbeat = setInterval(() => renew.run(Date.now() + LEASE_MS, threadId, holder), LEASE_MS / 3);
      try {
        return await work();
      } finally {
        clearInterval(heartbeat);
        release.run(threadId, holder);
      }
    },
    close: () => void database.close(),
  };
}
