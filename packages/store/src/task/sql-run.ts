import type { Json } from "@tenon/core";
import { sql, type Updateable } from "kysely";
import type { Signal } from "../event/signals.ts";
import { endOf } from "../lease/leases.ts";
import { releaseLease } from "../lease/sql-leases.ts";
import { withRetry } from "../sql/retry.ts";
import type { Queries, SqlSide, Tables } from "../sql/side.ts";
import type { FoundTask, TaskQueue, TaskRow, WriteTasks } from "./queue.ts";
import {
  type Asked,
  allAnswered,
  changeTopic,
  checkName,
  dueTopic,
  fruitlessAfter,
  leaseName,
  lostRun,
  openQuestions,
  pack,
  unpack,
} from "./rules.ts";
import type { TaskRecord, TaskRun } from "./tasks.ts";
import type { Wakes } from "./wakes.ts";

/** What a run needs of its store. */
export interface RunContext {
  readonly side: SqlSide;
  readonly leaseMs: number;
  readonly queue: TaskQueue;
  readonly wakes: Wakes;
  readonly write: WriteTasks;
}

/** As JSON, since a handler may write what a text of the database cannot hold. */
const packMessage = (statusMessage: string): string => pack("The status message of a task", statusMessage);

/** What is kept of the questions of a task. */
export const askedOf = (row: Pick<TaskRow, "asked">): Asked | undefined =>
  row.asked === null ? undefined : (JSON.parse(row.asked) as Asked); // ask() and answer() wrote it

/** The row of a task, locked until the transaction ends: whoever changes a task and its lease locks them in this order. */
export function lockTask(side: SqlSide, trx: Queries, id: string): Promise<FoundTask | undefined> {
  const query = trx.selectFrom("tenon_tasks").selectAll().select(side.clock().as("now")).where("id", "=", id);
  return (side.lockRows ? query.forNoKeyUpdate() : query).executeTakeFirst();
}

/** Whether the run with this fence has finished a step. */
export async function hasProgressed(db: Queries, id: string, fence: number): Promise<boolean> {
  const step = await db
    .selectFrom("tenon_task_steps")
    .select("step")
    .where("task", "=", id)
    .where("fence", "=", fence)
    .limit(1)
    .executeTakeFirst();
  return step !== undefined;
}

/** The second time the right to run is gone already, and nothing happens. */
const TWICE_IS_ONCE = { idempotent: true };

/** A run of a task over any of the databases. @param fence of its lease */
export function createSqlRun(
  context: RunContext,
  row: TaskRow,
  task: TaskRecord,
  { holder, fence }: { readonly holder: string; readonly fence: number },
  steps: ReadonlyMap<string, readonly Json[]>,
): TaskRun {
  const { side, leaseMs, queue, wakes, write } = context;
  const { id, server } = row;
  const lease = { name: leaseName(id), holder, fence };
  const changed: Signal = { topic: changeTopic(id), message: id };
  const due: Signal = { topic: dueTopic(server), message: id };

  /** This run's lease, as a condition on something else. */
  const held = (db: Queries) =>
    db
      .selectFrom("tenon_leases")
      .select("tenon_leases.name")
      .where("tenon_leases.name", "=", lease.name)
      .where("tenon_leases.holder", "=", holder)
      .where("tenon_leases.fence", "=", fence);

  async function lost(db: Queries): Promise<Error> {
    const found = await db.selectFrom("tenon_tasks").select("status").where("id", "=", id).executeTakeFirst();
    return lostRun(id, found?.status);
  }

  /** Lets go of the task. @returns its row, locked; undefined when the right to run it is lost */
  async function end(trx: Queries): Promise<FoundTask | undefined> {
    const found = await lockTask(side, trx, id);
    return (await releaseLease(side, trx, lease)) ? found : undefined;
  }

  /** Whether the task has ended as this run wants to end it. */
  async function isSame(trx: Queries, wanted: { status: string; result?: string; error?: string }): Promise<boolean> {
    const row = await trx
      .selectFrom("tenon_tasks")
      .select(["status", "result", "error"])
      .where("id", "=", id)
      .executeTakeFirst();
    const { status, result = null, error = null } = wanted;
    return row?.status === status && row.result === result && row.error === error;
  }

  const change = (trx: Queries, values: Updateable<Tables["tenon_tasks"]>): Promise<unknown> =>
    trx
      .updateTable("tenon_tasks")
      .set({ run_fence: null, ...values })
      .where("id", "=", id)
      .execute();

  /** Ends the run and makes the task due again. */
  async function requeue(delayMs: number, counts: boolean, statusMessage?: string): Promise<void> {
    const again = await write(async (trx, tell) => {
      const found = await end(trx);
      if (found?.status !== "working") return false;
      const progressed = await hasProgressed(trx, id, fence);
      const dueAt = endOf(Number(found.now), delayMs);
      const job = queue.newJob();
      await change(trx, {
        fruitless: counts || progressed ? fruitlessAfter(found.fruitless, progressed) : found.fruitless,
        due_at: dueAt,
        job,
        ...(statusMessage !== undefined && { status_message: packMessage(statusMessage), updated_at: side.wall() }),
      });
      await queue.push(trx, { id, server, job }, delayMs > 0 ? dueAt : undefined);
      if (statusMessage !== undefined) tell(changed);
      if (delayMs <= 0) tell(due);
      return true;
    }, TWICE_IS_ONCE);
    if (again && delayMs > 0) wakes.later(delayMs, due);
  }

  return {
    task,
    steps,
    journal: row.journal === null ? undefined : unpack(row.journal),
    answers: new Map(Object.entries(askedOf(row)?.answers ?? {})),
    fence,
    async renew() {
      const db = await side.db();
      const { numUpdatedRows } = await withRetry(
        () =>
          db
            .updateTable("tenon_leases")
            .set({ expires_at: sql<number>`${side.clock()} + ${sql.lit(Math.ceil(leaseMs))}` })
            .where("name", "=", lease.name)
            .where("holder", "=", holder)
            .where("fence", "=", fence)
            .where(({ exists, selectFrom }) =>
              exists(selectFrom("tenon_tasks").select("id").where("id", "=", id).where("status", "=", "working")),
            )
            .executeTakeFirst(),
        TWICE_IS_ONCE,
      );
      return numUpdatedRows > 0n;
    },
    async record(step, result) {
      checkName("The name of a step", step);
      const text = pack(`The result of the step "${step}"`, result);
      const db = await side.db();
      // one statement: the lease cannot be taken by somebody else between the look and the write
      const insert = db
        .insertInto("tenon_task_steps")
        .columns(["task", "step", "result", "fence", "at"])
        .expression(({ selectFrom }) => {
          const query = selectFrom("tenon_leases")
            .innerJoin("tenon_tasks", (join) => join.on("tenon_tasks.id", "=", id))
            .select([
              sql<string>`cast(${id} as text)`.as("task"),
              sql<string>`cast(${step} as text)`.as("step"),
              sql<string>`cast(${text} as text)`.as("result"),
              "tenon_leases.fence",
              side.clock().as("at"),
            ])
            .where("tenon_leases.name", "=", lease.name)
            .where("tenon_leases.holder", "=", holder)
            .where("tenon_leases.fence", "=", fence);
          return side.lockRows ? query.forShare("tenon_leases").forKeyShare("tenon_tasks") : query;
        })
        .onConflict((conflict) =>
          conflict.columns(["task", "step"]).doUpdateSet((excluded) => ({
            result: excluded.ref("excluded.result"),
            fence: excluded.ref("excluded.fence"),
            at: excluded.ref("excluded.at"),
          })),
        );
      const { numInsertedOrUpdatedRows } = await withRetry(() => insert.executeTakeFirst(), TWICE_IS_ONCE);
      if (numInsertedOrUpdatedRows !== 1n) throw await lost(db);
    },
    async report({ statusMessage, progress }) {
      const values = {
        ...(statusMessage !== undefined && { status_message: packMessage(statusMessage) }),
        ...(progress !== undefined && { progress: pack("The progress of a task", progress) }),
      };
      await write(async (trx, tell) => {
        const { numUpdatedRows } = await trx
          .updateTable("tenon_tasks")
          .set({ ...values, updated_at: side.wall() })
          .where("id", "=", id)
          .where("status", "=", "working")
          // of the row itself too: it is looked at again when another process has just changed it
          .where("run_fence", "=", fence)
          .where(({ exists }) => exists(held(trx)))
          .executeTakeFirst();
        if (numUpdatedRows === 0n) throw await lost(trx);
        tell(changed);
      });
    },
    async ask(questions, journal) {
      const text = pack("The journal of a task", journal);
      await write(async (trx, tell) => {
        const found = await end(trx);
        if (found?.status !== "working") throw await lost(trx);
        const { asked, used } = openQuestions(questions, JSON.parse(found.used_keys) as string[]); // ask() wrote it
        const dueNow = allAnswered(asked);
        const job = dueNow ? queue.newJob() : null;
        await change(trx, {
          status: dueNow ? "working" : "input_required",
          asked: pack("The questions of a task", asked),
          used_keys: pack("The keys of a task", used),
          journal: text,
          fruitless: 0,
          updated_at: side.wall(),
          due_at: side.clock(),
          job,
        });
        await queue.push(trx, { id, server, job });
        tell(changed);
        if (dueNow) tell(due);
      });
    },
    async finish(how) {
      const { status } = how;
      const status_message = how.statusMessage === undefined ? null : packMessage(how.statusMessage);
      const values =
        how.status === "failed"
          ? { error: pack("The error of a task", how.error), dead: how.dead === true ? 1 : 0 }
          : { result: pack("The result of a task", how.result) };
      let attempts = 0;
      await write(async (trx, tell) => {
        attempts += 1;
        const found = await end(trx);
        if (!found) {
          // the commit of the first attempt went through, and its answer was lost
          if (attempts > 1 && (await isSame(trx, { status, ...values }))) return;
          throw await lost(trx);
        }
        if (found.status !== "working") return void (await change(trx, {}));
        await change(trx, { status, status_message, updated_at: side.wall(), job: null, ...values });
        tell(changed);
      }, TWICE_IS_ONCE);
    },
    again: (delayMs, statusMessage) => requeue(delayMs, true, statusMessage),
    release: (delayMs = 0) => requeue(delayMs, false),
  };
}
