import { type Selectable, sql } from "kysely";
import type { Signal } from "../event/signals.ts";
import type { Queries, SqlSide, Tables } from "../sql/side.ts";
import { dueTopic } from "./rules.ts";

/** A task as the database has it. */
export type TaskRow = Selectable<Tables["tenon_tasks"]>;

/** The same, with the database's time when it was found. */
export type FoundTask = TaskRow & { readonly now: number | string };

/**
 * A transaction on tasks: what is told is heard once it is committed. Done again when the connection is lost before that, and,
 * where doing it twice does no harm, when it is lost while the database commits.
 */
export type WriteTasks = <T>(
  work: (trx: Queries, tell: (signal: Signal) => void) => Promise<T>,
  options?: { readonly idempotent: boolean },
) => Promise<T>;

/** What is queued of a task. */
export interface Queued {
  readonly id: string;
  readonly server: string;
  readonly job: string | null;
}

/** Which tasks are due, and in what order: a hint. What counts is the row of the task, and its lease. */
export interface TaskQueue {
  /** Opens it, before any transaction that queues: opening takes a connection of its own. */
  ready(): Promise<void>;
  /** Makes what is needed before tasks of the server can be queued. */
  prepare(server: string): Promise<void>;
  /** The name of a job to come, for the row of its task; null where the rows themselves are the queue. */
  newJob(): string | null;
  /**
   * Queues a task with the transaction that makes it due.
   * @param task with the job that stands for it from now on, of {@link newJob}
   * @param dueAt milliseconds since 1970; undefined: now
   */
  push(trx: Queries, task: Queued, dueAt?: number): Promise<void>;
  /** Whether it is worth a transaction to look for a due task. */
  worthALook(db: Queries, servers: readonly string[]): Promise<boolean>;
  /** The next task to try to take, its row locked; whoever gets it asks again when somebody else runs it. */
  next(trx: Queries, servers: readonly string[]): Promise<FoundTask | undefined>;
  /** Queues tasks that are due and that nobody runs or will find. @returns how many */
  repair(write: WriteTasks): Promise<number>;
  /** Cleans up behind itself. */
  tidy(): Promise<void>;
  close(): Promise<void>;
}

/** Tasks that could be taken now: due, nobody runs them, and their time is not over. */
export function takeable(side: SqlSide, db: Queries) {
  return db
    .selectFrom("tenon_tasks")
    .where("tenon_tasks.status", "=", "working")
    .where("tenon_tasks.due_at", "<=", side.clock())
    .where((where) =>
      where.or([where("tenon_tasks.expires_at", "is", null), where("tenon_tasks.expires_at", ">", side.clock())]),
    )
    .where((where) => where.not(where.exists(liveLease(side, db))));
}

/** The lease of a task somebody runs now. */
export function liveLease(side: SqlSide, db: Queries) {
  return db
    .selectFrom("tenon_leases")
    .select("tenon_leases.name")
    .where("tenon_leases.name", "=", sql<string>`'task:' || ${sql.ref("tenon_tasks.id")}`)
    .where("tenon_leases.holder", "!=", "")
    .where("tenon_leases.expires_at", ">", side.clock());
}

/** Wakes whoever runs tasks of these servers. */
export function tellDue(tasks: readonly { readonly server: string }[], tell: (signal: Signal) => void): void {
  for (const server of new Set(tasks.map((task) => task.server))) tell({ topic: dueTopic(server), message: null });
}

/** The rows themselves as a queue. */
export function createTableQueue(side: SqlSide): TaskQueue {
  const due = (db: Queries, servers: readonly string[]) =>
    takeable(side, db).where("tenon_tasks.server", "in", servers).orderBy("tenon_tasks.due_at").limit(1);

  return {
    ready: async () => undefined,
    prepare: async () => undefined,
    newJob: () => null,
    push: async () => undefined,
    worthALook: async (db, servers) =>
      (await due(db, servers).select("tenon_tasks.id").executeTakeFirst()) !== undefined,
    next(trx, servers) {
      const query = due(trx, servers).selectAll("tenon_tasks").select(side.clock().as("now"));
      return (side.lockRows ? query.forNoKeyUpdate().skipLocked() : query).executeTakeFirst();
    },
    repair: (write) =>
      write(async (trx, tell) => {
        const silent = await takeable(side, trx)
          .innerJoin("tenon_leases as last", (join) =>
            join
              .on("last.name", "=", sql<string>`'task:' || ${sql.ref("tenon_tasks.id")}`)
              .onRef("last.expires_at", ">=", "tenon_tasks.due_at"),
          )
          .where("tenon_tasks.run_fence", "is not", null)
          .select(["tenon_tasks.id", "tenon_tasks.server"])
          .execute();
        // due since now, so that the next look does not find them again
        for (const { id } of silent) {
          await trx.updateTable("tenon_tasks").set({ due_at: side.clock() }).where("id", "=", id).execute();
        }
        tellDue(silent, tell);
        return silent.length;
      }),
    tidy: async () => undefined,
    close: async () => undefined,
  };
}
