// What durable work costs on Postgres: how soon a task is picked up, and how many a second get done. Needs a database.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
// biome-ignore lint/correctness/noUndeclaredDependencies: of this checkout, not of the peers
import { openPostgres } from "@tenon/store/postgres";
// biome-ignore lint/correctness/noUndeclaredDependencies: of this checkout, not of the peers
import pg from "pg";
import { start } from "../lib/process.mjs";
import { median, rotated, row } from "../lib/rows.mjs";

const URL = process.env.TENON_TEST_DATABASE_URL ?? process.env.TENON_DATABASE_URL;
const PICK_UPS = 200;
const TASKS = 1_000;
const AT_ONCE = 32;
const CONCURRENCY = 8;

const word = () => `bench_${randomBytes(6).toString("hex")}`;

/** Runs `work` with schemas that are gone afterwards. */
async function withSchemas(count, work) {
  const names = Array.from({ length: count }, word);
  try {
    return await work(...names);
  } finally {
    const client = new pg.Client({ connectionString: URL });
    await client.connect();
    const { rows } = await client.query("select nspname from pg_namespace where nspname ~ $1", [
      `^(${names.join("|")})`,
    ]);
    for (const { nspname } of rows) await client.query(`drop schema "${nspname}" cascade`);
    await client.end();
  }
}

/** One task after the other: from asking for it until a worker of another connection has the right to run it. */
async function tenonPickUps(schema) {
  const producer = openPostgres({ url: URL, schema });
  const consumer = openPostgres({ url: URL, schema });
  let woken = () => undefined;
  const unfollow = consumer.tasks.onDue(["bench"], () => woken());
  await consumer.tasks.take(["bench"], "warm-up");
  const times = [];
  for (let i = -20; i < PICK_UPS; i++) {
    const began = performance.now();
    const picked = new Promise((resolve, reject) => {
      woken = () =>
        void consumer.tasks.take(["bench"], "worker").then((run) => {
          if (!run) return; // the wake of the one before
          woken = () => undefined;
          resolve({ run, ms: performance.now() - began });
        }, reject);
    });
    await producer.tasks.create({
      id: randomBytes(16).toString("base64url"),
      server: "bench",
      tool: "work",
      owner: "nobody",
      call: { args: { i } },
      ttlMs: 60_000,
      pollIntervalMs: 1_000,
    });
    const { run, ms } = await picked;
    if (i >= 0) times.push(ms);
    await run.finish({ status: "completed", result: null });
  }
  unfollow();
  await producer.close();
  await consumer.close();
  return median(times);
}

/** The least that can be done: a row, a notification, and the row read on another connection. */
async function barePickUps(schema) {
  const producer = new pg.Client({ connectionString: URL });
  const consumer = new pg.Client({ connectionString: URL });
  await Promise.all([producer.connect(), consumer.connect()]);
  await producer.query(`create schema ${schema}`);
  await producer.query(`create table ${schema}.work (id text primary key, call text not null)`);
  await consumer.query(`listen ${schema}`);
  const times = [];
  for (let i = -20; i < PICK_UPS; i++) {
    const id = randomBytes(16).toString("base64url");
    const began = performance.now();
    const told = once(consumer, "notification");
    await producer.query(`insert into ${schema}.work values ($1, $2)`, [id, JSON.stringify({ args: { i } })]);
    await producer.query(`select pg_notify('${schema}', $1)`, [id]);
    const [{ payload }] = await told;
    const { rows } = await consumer.query(`select * from ${schema}.work where id = $1`, [payload]);
    if (rows.length !== 1) throw new Error("the row is not there");
    if (i >= 0) times.push(performance.now() - began);
  }
  await Promise.all([producer.end(), consumer.end()]);
  return median(times);
}

async function pickUp({ repetitions, log }) {
  const measured = { tenon: [], baseline: [] };
  for (let i = 0; i < repetitions; i++) {
    for (const lane of rotated(["tenon", "baseline"], i)) {
      measured[lane].push(await withSchemas(1, lane === "tenon" ? tenonPickUps : barePickUps));
    }
    log(`pick-up: ${i + 1}/${repetitions}`);
  }
  return row({
    job: "pick-up",
    variant: "postgres",
    unit: "ms",
    better: "less",
    baseline: "insert+notify+select",
    measured,
  });
}

/** A process that does the work of a lane; it says `READY` when it waits for some. */
async function startWorker(lane, schema) {
  const child = start("task-worker.mjs", [`--lane=${lane}`, `--schema=${schema}`, `--concurrency=${CONCURRENCY}`], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface(child.stdout);
  await once(lines, "line");
  return { child, lines };
}

/** Tasks a second: from asking for the first until the last one is done, `AT_ONCE` being asked for at a time. */
async function throughput(lane, workers) {
  return withSchemas(1, async (schema) => {
    const producer = await startWorker(`${lane}-producer`, schema);
    const processes = [];
    for (let i = 0; i < workers; i++) processes.push(await startWorker(lane, schema));
    producer.child.stdin.write(`${TASKS} ${AT_ONCE}\n`);
    const [line] = await once(producer.lines, "line");
    for (const { child } of [producer, ...processes]) {
      child.stdin.end();
      if (child.exitCode === null) await once(child, "exit");
    }
    return TASKS / (Number(line) / 1_000);
  });
}

async function tasks(workers, { repetitions, log }) {
  const measured = { tenon: [], baseline: [] };
  for (let i = 0; i < repetitions; i++) {
    for (const lane of rotated(["tenon", "baseline"], i)) measured[lane].push(await throughput(lane, workers));
    log(`tasks, ${workers} worker${workers > 1 ? "s" : ""}: ${i + 1}/${repetitions}`);
  }
  const variant = `postgres, ${workers} worker${workers > 1 ? "s" : ""}`;
  return row({ job: "tasks", variant, unit: "tasks/s", better: "more", baseline: "pg-boss", measured });
}

export async function run({ repetitions = 5, log }) {
  if (!URL) {
    log(
      "the section tasks needs Postgres: set TENON_TEST_DATABASE_URL, such as postgres://user@127.0.0.1:5432/database",
    );
    return [];
  }
  const options = { repetitions, log };
  const alive = setInterval(() => undefined, 60_000); // connections of a store keep no process alive
  try {
    return [await pickUp(options), await tasks(1, options), await tasks(2, options)];
  } finally {
    clearInterval(alive);
  }
}
