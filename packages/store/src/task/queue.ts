import type { Selectable } from "kysely";
import { sql } from "kysely";
import type { Queries, SqlSide, Tables } from "../sql/side.ts";

/** A task as the database has it. */
export type TaskRow = Selectable<Tables["tenon_tasks"]>;

/** Which tasks are due, and in what order: a hint. What counts is the row of the task, and its lease. */
export interface TaskQueue {
  /** Makes what is needed before tasks of the server can be queued. */
  prepare(server: string): Promise<void>;
  /**
   * Queues a task with the transaction that makes it due.
   * @param dueAt milliseconds since 1970; undefined: now
   * @returns the job that stands for it from now on, where there are jobs
   */
  push(trx: Queries, task: { readonly id: string; readonly server: string }, dueAt?: number): Promise<string | null>;
  /** Whether it is worth a transaction to look for a due task. */
  worthALook(db: Queries, servers: readonly string[]): Promise<boolean>;
  /** The next task to try to take, its row locked; whoever gets it asks again when somebody else runs it. */
  next(trx: Queries, servers: readonly string[]): Promise<TaskRow | undefined>;
  /** Queues tasks that are due and that nobody runs or will find, with their servers. */
  repair(trx: Queries): Promise<readonly { readonly id: string; readonly server: string }[]>;
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

/** The rows themselves as a queue. */
export function createTableQueue(side: SqlSide): TaskQueue {
  const due = (db: Queries, servers: readonly string[]) =>
    takeable(side, db).where("tenon_tasks.server", "in", servers).orderBy("tenon_tasks.due_at").limit(1);

  return {
    prepare: async () => undefined,
    push: async () => null,
    worthALook: async (db, servers) =>
      (await due(db, servers).select("tenon_tasks.id").executeTakeFirst()) !== undefined,
    next(trx, servers) {
      const query = due(trx, servers).selectAll("tenon_tasks");
      return (side.lockRows ? query.forNoKeyUpdate().skipLocked() : query).executeTakeFirst();
    },
    async repair(trx) {
      const silent = await takeable(side, trx)
        .innerJoin("tenon_leases as last", (join) =>
          join
            .on("last.name", "=", sql<string>`'task:' || ${sql.ref("tenon_tasks.id")}`)
            .onRef("last.expires_at", ">=", "tenon_tasks.due_at"),
        )
        .where("tenon_tasks.run_fence", "is not", null)
        .select(["tenon_tasks.id", "tenon_tasks.server"])
        .execute();
      if (silent.length === 0) return [];
      // due since now, so that the next look does not find them again
      await trx
        .updateTable("tenon_tasks")
        .set({ due_at: side.clock() })
        .where(
          "id",
          "in",
          silent.map(({ id }) => id),
        )
        .execute();
      return silent;
    },
    tidy: async () => undefined,
    close: async () => undefined,
  };
}
