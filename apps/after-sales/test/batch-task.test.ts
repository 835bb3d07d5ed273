import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient } from "@tenon/client";
import { bearer } from "@tenon/client/auth";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { openSqlite } from "../src/database/sqlite.ts";
import { dataDirectory, ENTRY, Program, until } from "./desk.ts";
import { tokenFor } from "./token-for.ts";

/** `.ci/run` says ten thousand; fewer show the same sooner. */
const ORDERS = Number(process.env.TENON_TEST_BATCH ?? 2_000);
/** Orders in work at the same moment. */
const IN_WORK = 4;
const LONG_MS = 600_000;
/** Bytes by which the memory of the process may grow between the first tenth of the orders and the last: less than what is measured twice over. */
const GROWTH_BYTES = 64 * 1024 * 1024;
const ids = Array.from({ length: ORDERS }, (_, i) => `ORD-${100_000 + i}`);

/** Resident bytes of a process; 0 where the system does not tell. */
function memoryOf(pid: number): number {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return 0;
  const [, kib = 0] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(file, "utf8")) ?? [];
  return Number(kib) * 1024;
}

interface Kept {
  /** Further flags of the serving process, and variables of every process. */
  readonly serve: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Whether a process of its own runs the tasks. */
  readonly worker: boolean;
  seed(): Promise<void>;
  count(): Promise<number>;
}

async function inFiles(data: string): Promise<Kept> {
  const database = () => openSqlite(join(data, "orders.sqlite"));
  const use = async <T>(work: (file: ReturnType<typeof database>) => T): Promise<T> => {
    const file = database();
    try {
      return work(file);
    } finally {
      file.close();
    }
  };
  return {
    serve: [],
    env: {},
    worker: false,
    seed: () =>
      use((file) => {
        const add = file.prepare("insert into orders values (?, 'delivered', 100)");
        file.transaction(() => {
          for (const id of ids) add.run(id);
        })();
      }),
    count: () => use((file) => Number(file.prepare("select count(*) from refunds").pluck().get())),
  };
}

async function inPostgres(url: string): Promise<Kept> {
  const schema = `desk_batch_${process.pid}_${Date.now()}`;
  const pool = new pg.Pool({ connectionString: url, max: 1, options: `-c search_path=${schema}` });
  onTestFinished(async () => {
    await pool.query(`drop schema if exists ${schema} cascade; drop schema if exists ${schema}_jobs cascade`);
    await pool.end();
  });
  return {
    serve: ["--no-worker"],
    env: { TENON_DATABASE_URL: url, TENON_DATABASE_SCHEMA: schema },
    worker: true,
    async seed() {
      await pool.query("insert into orders select id, 'delivered', 100 from unnest($1::text[]) as id", [ids]);
    },
    count: async () => Number((await pool.query("select count(*) from refunds")).rows[0]?.count),
  };
}

/** How often each order was refunded, by what the processes logged. */
function refundsIn(...programs: readonly Program[]): Map<string, number> {
  const times = new Map<string, number>();
  for (const { stderr } of programs) {
    for (const [, id = ""] of stderr.matchAll(/(ORD-\d+) refunded, 1\.00 CNY/g))
      times.set(id, (times.get(id) ?? 0) + 1);
  }
  return times;
}

/** Ten thousand orders as a task: its client ends and another one follows, the process that works is killed in the middle. */
async function wholeBatch(data: string, kept: Kept): Promise<void> {
  const start = async (...words: string[]): Promise<Program> => {
    const program = new Program([process.execPath, ENTRY, ...words, "--data", data, "--lang", "en"], kept.env);
    await program.sees(words[0] === "serve" ? /http:\S+\/mcp\n/ : "worker is ready");
    return program;
  };
  const server = await start("serve", "order", "--port", "0", ...kept.serve);
  const url = /http:\S+/.exec(server.stdout)?.[0] ?? "";
  const first = kept.worker ? await start("worker") : server;
  await kept.seed();
  const token = await tokenFor(data, "order", { ttlMs: LONG_MS });
  const connect = (): Client => {
    const client = createClient({ servers: { order: { url, auth: bearer(token) } } });
    onTestFinished(() => client.close());
    return client;
  };

  const starter = connect();
  const { id = "", status } = await starter.tasks.start("order", "batch_refund", { order_ids: ids, reason: "r" });
  expect(status).toBe("working");
  await starter.close(); // the client ends; what it began goes on

  let worker = first;
  /** How far it is, and the memory of who works on it, at each look. */
  const looks: { progress: number; bytes: number }[] = [];
  const looker = connect();
  async function look(): Promise<number> {
    await sleep(250);
    const { progress } = await looker.tasks.get("order", id);
    looks.push({ progress: progress?.progress ?? 0, bytes: memoryOf(worker.pid) });
    return progress?.progress ?? 0;
  }
  const killAt = Math.floor(ORDERS * (0.15 + Math.random() * 0.7));
  await until(async () => (await look()) >= killAt, `order ${killAt}`, LONG_MS);
  const rising = looks.map(({ progress }) => progress);
  expect(rising).toEqual([...rising].sort((a, b) => a - b));
  expect(new Set(rising).size).toBeGreaterThan(8);
  first.kill("SIGKILL");
  await first.ended;
  const finished = await kept.count();
  expect(finished).toBeGreaterThanOrEqual(killAt);

  const { port } = new URL(url);
  worker = kept.worker ? await start("worker") : await start("serve", "order", "--port", port);
  const heard: number[] = [];
  let over = false;
  const watching = (async () => {
    while (!over) await look().catch(() => undefined);
  })();
  const follower = connect(); // the same client after its restart: all it has kept is the id
  const outcome = await follower.tasks.resume("order", id, {
    onProgress: ({ progress }) => void heard.push(progress),
    task: { totalMs: LONG_MS },
  });
  over = true;
  await watching;
  expect(outcome.isError).toBe(false);
  expect(outcome.structured).toMatchObject({ total: ORDERS, skipped: [], amount: `${ORDERS}.00` });
  expect((outcome.structured as { refunded: unknown[] }).refunded).toHaveLength(ORDERS);
  expect(heard.length).toBeGreaterThan(1);
  expect(heard).toEqual([...heard].sort((a, b) => a - b));

  // nothing was lost, and nothing done twice: no more than the orders in work at the kill were even tried again
  expect(await kept.count()).toBe(ORDERS);
  const times = refundsIn(first, worker);
  expect(times.size).toBeGreaterThanOrEqual(ORDERS - IN_WORK);
  expect([...times.values()].filter((count) => count > 1).length).toBeLessThanOrEqual(IN_WORK);
  expect(refundsIn(worker).size).toBeLessThanOrEqual(ORDERS - finished + IN_WORK);

  const early = looks.find(({ progress }) => progress >= ORDERS / 10)?.bytes ?? 0;
  const most = Math.max(...looks.filter(({ progress }) => progress >= ORDERS / 10).map(({ bytes }) => bytes));
  expect(most - early).toBeLessThan(GROWTH_BYTES);
}

describe(`a batch of ${ORDERS} orders as a task, whose client and worker end in the middle`, () => {
  it("is finished in files, each order once, with its progress seen and its memory flat", {
    timeout: LONG_MS,
  }, async () => {
    const data = dataDirectory();
    await wholeBatch(data, await inFiles(data));
  });

  const url = process.env.TENON_TEST_DATABASE_URL;
  if (url === undefined) it.skip("in Postgres: set TENON_TEST_DATABASE_URL to run it", () => undefined);
  else {
    it("is finished in Postgres by another worker, just so", { timeout: LONG_MS }, async () => {
      await wholeBatch(dataDirectory(), await inPostgres(url));
    });
  }
});
