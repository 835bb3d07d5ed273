// One side of the `tasks` section: asks for tasks, or does them. Ends with its standard input.
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
// biome-ignore lint/correctness/noUndeclaredDependencies: of this checkout, not of the peers
import { createServer } from "@tenon/server";
// biome-ignore lint/correctness/noUndeclaredDependencies: of this checkout, not of the peers
import { openPostgres } from "@tenon/store/postgres";
// biome-ignore lint/correctness/noUndeclaredDependencies: of this checkout, not of the peers
import pg from "pg";
// biome-ignore lint/correctness/noUndeclaredDependencies: of this checkout, not of the peers
import PgBoss from "pg-boss";
import { flag } from "../lib/flag.mjs";
import { request } from "../lib/wire.mjs";

const url = process.env.TENON_TEST_DATABASE_URL ?? process.env.TENON_DATABASE_URL;
const lane = flag("lane");
const schema = flag("schema");
const concurrency = Number(flag("concurrency"));
const WITH_TASKS = { extensions: { "io.modelcontextprotocol/tasks": {} } };

/** Reads `<count> <at once>` and says how many milliseconds it took to ask for all and see them done. */
function produce(ask, done, close) {
  const lines = createInterface(process.stdin);
  lines.once("line", async (line) => {
    const [count, atOnce] = line.split(" ").map(Number);
    const began = performance.now();
    let next = 0;
    const asking = async () => {
      while (next < count) await ask(next++);
    };
    await Promise.all(Array.from({ length: atOnce }, asking));
    while ((await done()) < count) await sleep(20);
    console.log(performance.now() - began);
  });
  lines.once("close", close);
}

const lanes = {
  async tenon() {
    const { server, stores } = tenonServer(concurrency);
    const working = await server.work({ concurrency });
    process.stdin.resume().once("end", async () => {
      await working.close();
      await server.close();
      await stores.close();
      process.exit(0);
    });
  },
  async "tenon-producer"() {
    const { server, stores } = tenonServer(0);
    await stores.tasks.count("bench"); // its tables are there before the workers come
    produce(
      async (i) => {
        const asked = request("modern", "tools/call", { name: "work", arguments: { i } }, i, WITH_TASKS);
        const answer = await server.fetch(new Request("http://127.0.0.1/mcp", { method: "POST", ...asked }));
        const { result } = await answer.json();
        if (result?.resultType !== "task") throw new Error(`no task: ${JSON.stringify(result)}`);
      },
      async () => (await stores.tasks.count("bench")).completed,
      () => process.exit(0),
    );
  },
  async baseline() {
    const { boss, pool } = await bareQueue();
    let ended = false;
    const work = async () => {
      while (!ended) {
        const [job] = await boss.fetch("bench");
        if (!job) await sleep(5);
        else {
          await pool.query(`insert into ${schema}.steps values ($1, $2)`, [job.id, JSON.stringify(job.data.i * 2)]);
          await boss.complete("bench", job.id);
        }
      }
    };
    const all = Promise.all(Array.from({ length: concurrency }, work));
    process.stdin.resume().once("end", async () => {
      ended = true;
      await all;
      process.exit(0);
    });
  },
  async "baseline-producer"() {
    const { boss, pool } = await bareQueue();
    produce(
      (i) => boss.send("bench", { i }),
      async () => {
        const { rows } = await pool.query(`select count(*) from ${schema}_jobs.job where state = 'completed'`);
        return Number(rows[0].count);
      },
      () => process.exit(0),
    );
  },
};

/** A tool whose work is one step: what counts is everything around it. */
function tenonServer(tasks) {
  const stores = openPostgres({ url, schema });
  const server = createServer({
    name: "bench",
    version: "1.0.0",
    store: stores,
    tasks: { concurrency: tasks },
    logLevel: "error",
    stateKeys: [Buffer.alloc(32, 1).toString("base64url")],
  });
  const input = { type: "object", properties: { i: { type: "number" } }, required: ["i"] };
  server.tool("work", { input, task: "required" }, ({ i }, ctx) => ctx.step("double", () => i * 2));
  return { server, stores };
}

/** The queue that Tenon uses, by itself, with the one row that a step is. */
async function bareQueue() {
  const pool = new pg.Pool({ connectionString: url });
  await pool.query(`create schema if not exists ${schema}`);
  await pool.query(`create table if not exists ${schema}.steps (id text primary key, result text not null)`);
  const boss = new PgBoss({ connectionString: url, schema: `${schema}_jobs`, supervise: false, schedule: false });
  boss.on("error", () => undefined);
  await boss.start();
  await boss.createQueue("bench");
  return { boss, pool };
}

await lanes[lane]();
console.log("READY");
