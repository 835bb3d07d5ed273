import type { Json } from "@tenon/core";
import { sql } from "kysely";
import type { Signal } from "../event/signals.ts";
import { takeLease } from "../lease/sql-leases.ts";
import { withRetry } from "../sql/retry.ts";
import type { Queries, SqlSide } from "../sql/side.ts";
import { type FoundTask, liveLease, type TaskQueue, type TaskRow, type WriteTasks } from "./queue.ts";
import {
  allAnswered,
  changeTopic,
  checkName,
  checkTask,
  dueTopic,
  ENDED,
  fruitlessAfter,
  hasEnded,
  leaseName,
  otherCall,
  pack,
  requestsOf,
  SWEEP_EVERY_MS,
  TIME_OVER,
  takeAnswers,
  unpack,
  unpackObject,
} from "./rules.ts";
import { askedOf, createSqlRun, hasProgressed, lockTask, type RunContext } from "./sql-run.ts";
import type { NewTask, TaskRecord, TaskStore } from "./tasks.ts";
import { createWakes } from "./wakes.ts";

/** How many tasks go in one transaction of a sweep. */
const SWEPT_AT_ONCE = 100;

const numberOrNull = (value: number | string | null): number | null => (value === null ? null : Number(value));

function recordOf(row: TaskRow): TaskRecord {
  return {
    id: row.id,
    server: row.server,
    tool: row.tool,
    owner: row.owner,
    call: unpackObject(row.call),
    ttlMs: numberOrNull(row.ttl_ms),
    pollIntervalMs: Number(row.poll_interval_ms),
    status: row.status,
    ...(row.status_message !== null && { statusMessage: String(unpack(row.status_message)) }),
    ...(row.progress !== null && { progress: unpackObject(row.progress) }),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    requests: requestsOf(row.status, askedOf(row)),
    ...(row.result !== null && { result: unpack(row.result) }),
    ...(row.error !== null && { error: unpackObject(row.error) }),
    fruitless: row.fruitless,
    dead: row.dead === 1,
  };
}

/** The task store over any of the databases: one set of queries. */
export function createSqlTasks(side: SqlSide, leaseMs: number, queue: TaskQueue): TaskStore {
  const wakes = createWakes(side.signals);
  let swept = performance.now();

  const write: WriteTasks = async (work, options = { idempotent: false }) => {
    await queue.ready();
    const db = await side.db();
    return withRetry(async () => {
      const told: Signal[] = [];
      const done = await db.transaction().execute(async (trx) => {
        const result = await work(trx, (signal) => told.push(signal));
        await side.signals.inside(trx, told);
        return result;
      });
      side.signals.after(told);
      return done;
    }, options);
  };
  const read = async <T>(look: (db: Queries) => Promise<T>): Promise<T> => {
    const db = await side.db();
    return withRetry(() => look(db), { idempotent: true });
  };
  const context: RunContext = { side, leaseMs, queue, wakes, write };

  /** Tasks that are there for those who look: an ended one is gone when its time is over. */
  const visible = (db: Queries) =>
    db
      .selectFrom("tenon_tasks")
      .where((where) =>
        where.or([
          where("status", "not in", ENDED),
          where("expires_at", "is", null),
          where("expires_at", ">", side.clock()),
        ]),
      );

  /** Whether its time is over and it has ended. */
  const isGone = (row: FoundTask): boolean =>
    hasEnded(row.status) && row.expires_at !== null && Number(row.expires_at) <= Number(row.now);

  async function deleteTasks(trx: Queries, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await trx.deleteFrom("tenon_tasks").where("id", "in", ids).execute();
    await trx.deleteFrom("tenon_task_steps").where("task", "in", ids).execute();
  }

  /** Keeps a task. @returns undefined when another one has its key or id */
  async function insert(trx: Queries, task: NewTask, call: string): Promise<TaskRow | undefined> {
    const now = side.moment();
    const at = side.wall();
    return trx
      .insertInto("tenon_tasks")
      .values({
        id: task.id,
        server: task.server,
        tool: task.tool,
        owner: task.owner,
        call_key: task.callKey?.key ?? null,
        call_digest: task.callKey?.digest ?? null,
        call,
        ttl_ms: task.ttlMs,
        poll_interval_ms: task.pollIntervalMs,
        status: "working",
        created_at: at,
        updated_at: at,
        expires_at: task.ttlMs === null ? null : sql<number>`${now} + ${sql.lit(Math.ceil(task.ttlMs))}`,
        used_keys: "[]",
        fruitless: 0,
        dead: 0,
        due_at: now,
        job: queue.newJob(),
      })
      .onConflict((conflict) => conflict.doNothing())
      .returningAll()
      .executeTakeFirst();
  }

  async function endOverdue(): Promise<number> {
    return write(async (trx, tell) => {
      const over = await trx
        .updateTable("tenon_tasks")
        .set({
          status: "failed",
          error: pack("An error", TIME_OVER),
          status_message: null,
          updated_at: side.wall(),
          job: null,
        })
        .where("status", "not in", ENDED)
        .where("expires_at", "<=", side.clock())
        .returning("id")
        .execute();
      for (const { id } of over) tell({ topic: changeTopic(id), message: id });
      return over.length;
    });
  }

  async function deleteOld(): Promise<number> {
    let deleted = 0;
    for (;;) {
      const count = await write(async (trx) => {
        const query = trx
          .selectFrom("tenon_tasks")
          .select("id")
          .where("status", "in", ENDED)
          .where("expires_at", "<=", side.clock())
          .where((where) => where.not(where.exists(liveLease(side, trx)))) // its last words are still kept
          .limit(SWEPT_AT_ONCE);
        const old = await (side.lockRows ? query.forUpdate().skipLocked() : query).execute();
        await deleteTasks(
          trx,
          old.map(({ id }) => id),
        );
        return old.length;
      });
      deleted += count;
      if (count < SWEPT_AT_ONCE) return deleted;
    }
  }

  async function sweep(): Promise<{ requeued: number; ended: number; deleted: number }> {
    swept = performance.now();
    const ended = await endOverdue();
    const deleted = await deleteOld();
    const requeued = await queue.repair(write);
    await queue.tidy();
    return { requeued, ended, deleted };
  }

  /** Whoever comes by cleans up: no timer keeps a process alive for it. */
  async function sweepIfLast(agoMs: number): Promise<void> {
    if (performance.now() - swept >= agoMs) await sweep();
  }

  return {
    shared: true,
    leaseMs,
    async create(task) {
      checkTask(task);
      const call = pack("The call of a task", task.call);
      await sweepIfLast(SWEEP_EVERY_MS * 12); // where nobody runs tasks
      await queue.prepare(task.server);
      // twice is once: the second time it is there
      return write(
        async (trx, tell) => {
          for (;;) {
            const row = await insert(trx, task, call);
            if (row) {
              await queue.push(trx, row);
              tell({ topic: dueTopic(task.server), message: task.id });
              return recordOf(row);
            }
            const query = trx.selectFrom("tenon_tasks").selectAll().select(side.clock().as("now"));
            const same = await (task.callKey
              ? query.where((where) =>
                  where.or([where("call_key", "=", task.callKey?.key ?? null), where("id", "=", task.id)]),
                )
              : query.where("id", "=", task.id)
            ).executeTakeFirst();
            if (!same) continue; // deleted between the two
            if (isGone(same)) {
              await deleteTasks(trx, [same.id]);
              continue;
            }
            if (task.callKey && same.call_digest !== task.callKey.digest) throw otherCall(task.callKey.key);
            return recordOf(same);
          }
        },
        { idempotent: true },
      );
    },
    async find(id) {
      const row = await read((db) => visible(db).selectAll().where("id", "=", id).executeTakeFirst());
      return row && recordOf(row);
    },
    async answer(id, answers) {
      pack("The answers to a task", answers);
      return write(async (trx, tell) => {
        const row = await lockTask(side, trx, id);
        const before = row && askedOf(row);
        if (row?.status !== "input_required" || !before) return false;
        const asked = takeAnswers(before, answers);
        if (!asked) return false;
        const due = allAnswered(asked);
        const job = due ? queue.newJob() : null;
        await queue.push(trx, { id, server: row.server, job });
        await trx
          .updateTable("tenon_tasks")
          .set({
            asked: pack("The answers to a task", asked),
            updated_at: side.wall(),
            ...(due && { status: "working", due_at: side.clock(), job }),
          })
          .where("id", "=", id)
          .execute();
        tell({ topic: changeTopic(id), message: id });
        if (due) tell({ topic: dueTopic(row.server), message: id });
        return true;
      });
    },
    async cancel(id) {
      return write(async (trx, tell) => {
        const { numUpdatedRows } = await trx
          .updateTable("tenon_tasks")
          .set({ status: "cancelled", updated_at: side.wall(), job: null })
          .where("id", "=", id)
          .where("status", "not in", ENDED)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) return false;
        tell({ topic: changeTopic(id), message: id });
        return true;
      });
    },
    async take(servers, holder) {
      if (servers.length === 0) return undefined;
      checkName("The holder of a task", holder);
      await sweepIfLast(Math.min(SWEEP_EVERY_MS, leaseMs));
      if (!(await queue.worthALook(await side.db(), servers))) return undefined;
      return write(async (trx) => {
        for (;;) {
          const row = await queue.next(trx, servers);
          if (!row) return undefined;
          const lease = await takeLease(side, trx, { name: leaseName(row.id), holder, ttlMs: leaseMs });
          if (!lease) continue; // somebody runs it
          const { fence } = lease;
          const crashed = numberOrNull(row.run_fence);
          const fruitless =
            crashed === null ? row.fruitless : fruitlessAfter(row.fruitless, await hasProgressed(trx, row.id, crashed));
          await trx.updateTable("tenon_tasks").set({ run_fence: fence, fruitless }).where("id", "=", row.id).execute();
          const rows = await trx
            .selectFrom("tenon_task_steps")
            .select(["step", "result"])
            .where("task", "=", row.id)
            .execute();
          const steps = new Map(rows.map(({ step, result }) => [step, unpack(result) as Json[]])); // record() packed a list
          return createSqlRun(context, row, { ...recordOf(row), fruitless }, { holder, fence }, steps);
        }
      });
    },
    onDue: (servers, wake) => wakes.listen(servers.map(dueTopic), wake),
    onChange: (id, changed) => wakes.listen([changeTopic(id)], changed),
    async list(filter = {}) {
      const { server, status, dead, limit = 100 } = filter;
      const rows = await read((db) => {
        let query = visible(db).selectAll();
        if (server !== undefined) query = query.where("server", "=", server);
        if (status !== undefined) query = query.where("status", "=", status);
        if (dead !== undefined) query = query.where("dead", "=", dead ? 1 : 0);
        return query.orderBy("created_at", "desc").orderBy("id").limit(limit).execute();
      });
      return rows.map(recordOf);
    },
    async count(server) {
      const rows = await read((db) => {
        const query = visible(db).select(({ fn }) => ["status", fn.countAll().as("tasks")]);
        return (server === undefined ? query : query.where("server", "=", server)).groupBy("status").execute();
      });
      const counts = { working: 0, input_required: 0, completed: 0, failed: 0, cancelled: 0 };
      for (const { status, tasks } of rows) counts[status] = Number(tasks);
      return counts;
    },
    async retry(id) {
      return write(async (trx, tell) => {
        const row = await lockTask(side, trx, id);
        if (row?.status !== "failed" || row.dead !== 1 || isGone(row)) return false;
        const job = queue.newJob();
        await queue.push(trx, { id, server: row.server, job });
        await trx
          .updateTable("tenon_tasks")
          .set({
            status: "working",
            dead: 0,
            fruitless: 0,
            error: null,
            status_message: null,
            updated_at: side.wall(),
            due_at: side.clock(),
            job,
          })
          .where("id", "=", id)
          .execute();
        tell({ topic: changeTopic(id), message: id });
        tell({ topic: dueTopic(row.server), message: id });
        return true;
      });
    },
    sweep,
    async close() {
      wakes.close();
      await queue.close();
      await side.close();
    },
  };
}
