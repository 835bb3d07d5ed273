import { randomUUID } from "node:crypto";
import { ConfigError, codeOf } from "@tenon/core";
import { digest } from "@tenon/core/internal";
import { CompiledQuery, sql } from "kysely";
import type PgBoss from "pg-boss";
import type { Pool, PoolClient } from "../sql/postgres-pool.ts";
import type { Queries, SqlSide } from "../sql/side.ts";
import { type FoundTask, type Queued, type TaskQueue, takeable, tellDue } from "./queue.ts";
import { lockTask } from "./sql-run.ts";

/** What a job says: which task to look at. */
interface JobData {
  readonly task: string;
}

/** Where the jobs are kept. */
export interface BossOptions {
  /** The schema of pg-boss. */
  readonly schema: string;
  readonly pool: Pool;
  /** Lock of the database that keeps those apart who make tables. */
  readonly lock: number;
}

/** How long finished jobs stay, in seconds: they say nothing that the row of the task does not. */
const KEPT_S = 600;
const TIDY_EVERY_MS = 5 * 60_000;
/** How many lost jobs one transaction repairs. */
const REPAIRED_AT_ONCE = 500;
/** SQLSTATE of a table and of a schema that is not there. */
const MISSING: ReadonlySet<unknown> = new Set(["42P01", "3F000"]);
/** The last moment that Postgres reads as JavaScript writes it. */
const LAST_MS = Date.UTC(9999, 0);

/** The queue of a server. A name that is no word is digested; the dot keeps the two apart. */
const queueOf = (server: string): string => (/^[\w-]{1,64}$/.test(server) ? server : `d.${digest(server)}`);

async function loadBoss(): Promise<typeof PgBoss> {
  try {
    return (await import("pg-boss")).default;
  } catch (error) {
    if (codeOf(error) !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new ConfigError("Tasks on Postgres are queued with pg-boss, which is not installed: npm install pg-boss@10", {
      code: "missing_package",
      cause: error,
    });
  }
}

/**
 * Jobs of pg-boss as the queue, and nothing but the queue: a job says that a task may be due, its row and its lease say whether
 * it is. Jobs are sent with the transaction that makes a task due. They are fetched and completed with the one that takes it, so
 * a database that dies in between leaves either both or neither, and none of pg-boss's timers is needed.
 */
export function createBossQueue(side: SqlSide, { schema, pool, lock }: BossOptions): TaskQueue {
  let starting: Promise<PgBoss> | undefined;
  /** Set while tables are made, which goes over one connection that holds the lock. */
  let maker: PoolClient | undefined;
  const known = new Set<string>();
  const making = new Map<string, Promise<void>>();
  let turn = 0;
  let tidied = Date.now();

  const newJob = (): string => randomUUID();

  /** What pg-boss does on its own: over a connection that is thrown away when it fails, since it may be left in a transaction. */
  async function executeSql(text: string, values: unknown[] = []): Promise<{ rows: unknown[] }> {
    if (maker) return maker.query<unknown>(text, values);
    return onConnection((client) => client.query<unknown>(text, values));
  }

  async function onConnection<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect();
    let done = false;
    try {
      const result = await work(client);
      done = true;
      return result;
    } finally {
      client.release(!done);
    }
  }

  /** Tables are made by one process at a time: two that make queues at once can wait for each other for ever. */
  let lastMade: Promise<unknown> = Promise.resolve();
  function makeTables<T>(work: () => Promise<T>): Promise<T> {
    const made = lastMade.then(() =>
      onConnection(async (client) => {
        await client.query(`select pg_advisory_lock(${lock})`, []);
        maker = client;
        try {
          const result = await work();
          await client.query(`select pg_advisory_unlock(${lock})`, []);
          return result;
        } finally {
          maker = undefined; // after a failure the connection is closed, and the lock goes with it
        }
      }),
    );
    lastMade = made.catch(() => undefined);
    return made;
  }

  async function start(): Promise<PgBoss> {
    const Boss = await loadBoss();
    await side.db();
    const boss = new Boss({
      schema,
      db: { executeSql },
      supervise: false,
      schedule: false,
      archiveCompletedAfterSeconds: KEPT_S,
      deleteAfterSeconds: KEPT_S,
    });
    boss.on("error", () => undefined); // what we ask for fails where we asked; an event nobody hears would end the process
    await makeTables(() => boss.start());
    return boss;
  }

  function ready(): Promise<PgBoss> {
    starting ??= start().catch((error: unknown) => {
      starting = undefined; // the database may be there next time
      throw error;
    });
    return starting;
  }

  /** Somebody dropped the tables of the queue: they are made again before the next use, and a sweep queues what is due. */
  function noteMissing(error: unknown): void {
    if (!MISSING.has(codeOf(error))) return;
    starting = undefined;
    known.clear();
  }

  async function prepare(server: string): Promise<void> {
    const boss = await ready();
    const name = queueOf(server);
    if (known.has(name)) return;
    const made = making.get(name) ?? makeTables(() => boss.createQueue(name)).finally(() => making.delete(name));
    making.set(name, made);
    await made;
    known.add(name);
  }

  /** Statements of pg-boss inside of a transaction. It swallows the errors of a fetch: they are kept. */
  function inside(trx: Queries): PgBoss.Db & { readonly errors: unknown[] } {
    const errors: unknown[] = [];
    return {
      errors,
      async executeSql(text: string, values: unknown[] = []) {
        try {
          return { rows: [...(await trx.executeQuery(CompiledQuery.raw(text, values))).rows] };
        } catch (error) {
          errors.push(error);
          noteMissing(error);
          throw error;
        }
      },
    };
  }

  async function push(trx: Queries, { id, server, job }: Queued, dueAt?: number): Promise<void> {
    if (job === null) return;
    const boss = await ready();
    // null when somebody has deleted the queue: sweep() makes it again
    const sent = await boss.send(queueOf(server), { task: id } satisfies JobData, {
      id: job,
      db: inside(trx),
      ...(dueAt !== undefined && { startAfter: new Date(Math.min(dueAt, LAST_MS)) }),
    });
    if (sent === null) known.delete(queueOf(server));
  }

  /** Queues a task anew: jobs of before are stale. */
  async function replaceJob(trx: Queries, task: Pick<Queued, "id" | "server">, dueAt?: number): Promise<void> {
    const job = newJob();
    await push(trx, { id: task.id, server: task.server, job }, dueAt);
    await trx.updateTable("tenon_tasks").set({ job }).where("id", "=", task.id).execute();
  }

  /** One job of the queue, done with: the transaction that takes it takes the task or finds out why not. */
  async function fetchJob(trx: Queries, queue: string): Promise<PgBoss.Job<JobData> | undefined> {
    const boss = await ready();
    const db = inside(trx);
    const [job] = await boss.fetch<JobData>(queue, { db, priority: false });
    if (db.errors.length > 0) throw db.errors[0];
    if (job) await boss.complete(queue, job.id, {}, { db });
    return job;
  }

  /** What a job stands for; undefined when it is stale, or was put back since its task is not due yet. */
  async function taskOf(trx: Queries, job: PgBoss.Job<JobData>): Promise<FoundTask | undefined> {
    const row = await lockTask(side, trx, job.data.task);
    if (row?.status !== "working" || row.job !== job.id) return undefined;
    const now = Number(row.now);
    if (row.expires_at !== null && Number(row.expires_at) <= now) return undefined; // sweep() ends it
    const dueAt = Number(row.due_at);
    if (dueAt <= now) return row;
    await replaceJob(trx, row, dueAt);
    return undefined;
  }

  /** A job that will be fetched. */
  const waiting = (queue: string) =>
    sql<boolean>`exists (select 1 from ${sql.table(`${schema}.job`)} as job where job.name = ${queue}
      and job.id = ${sql.ref("tenon_tasks.job")}::uuid and job.state in ('created', 'retry'))`;

  return {
    prepare,
    ready: async () => void (await ready()),
    newJob,
    push,
    worthALook: async () => true,
    async next(trx, servers) {
      turn += 1; // no server starves while another one's queue is full
      for (const [i] of servers.entries()) {
        const queue = queueOf(servers[(i + turn) % servers.length] ?? "");
        for (let job = await fetchJob(trx, queue); job; job = await fetchJob(trx, queue)) {
          const row = await taskOf(trx, job);
          if (row) return row;
        }
      }
      return undefined;
    },
    async repair(write) {
      const servers = await takeable(side, await side.db())
        .select("tenon_tasks.server")
        .distinct()
        .execute();
      let repaired = 0;
      for (const { server } of servers) {
        await prepare(server); // somebody may have deleted the queue
        repaired += await write(async (trx, tell) => {
          const lost = await takeable(side, trx)
            .where("tenon_tasks.server", "=", server)
            .where((where) => where.or([where("tenon_tasks.job", "is", null), where.not(waiting(queueOf(server)))]))
            .select(["tenon_tasks.id", "tenon_tasks.server"])
            .limit(REPAIRED_AT_ONCE)
            .forNoKeyUpdate()
            .skipLocked()
            .execute();
          for (const task of lost) await replaceJob(trx, task);
          tellDue(lost, tell);
          return lost.length;
        }).catch((error: unknown) => {
          noteMissing(error);
          throw error;
        });
      }
      return repaired;
    },
    async tidy() {
      if (Date.now() - tidied < TIDY_EVERY_MS) return;
      tidied = Date.now();
      await (await ready()).maintain();
    },
    async close() {
      if (!starting) return;
      const boss = await starting.catch(() => undefined);
      await boss?.stop({ graceful: false, close: false });
    },
  };
}
