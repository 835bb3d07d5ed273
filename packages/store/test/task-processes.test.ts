import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import type { Stores } from "../src/index.ts";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";
import { onPostgres } from "./postgres.ts";
import { start } from "./spawn.ts";
import { newTask } from "./task-help.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-task-processes-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const TASKS = 200;
const PROCESSES = 4;
const LEASE_MS = 400;

interface Step {
  readonly task: string;
  readonly step: string;
  readonly fence: number;
}

interface Line {
  readonly what: "took" | "recorded" | "finished" | "lost";
  readonly id: string;
  readonly fence: number;
  readonly more: unknown;
}

/** One disturbance for so many lines that the processes have written. */
const LINES_PER_DISTURBANCE = 50;

/** Runs tasks in processes that are killed and stopped at random, until all have ended. @returns how often each happened */
async function disturb(stores: Stores, server: string, log: string, begin: () => Promise<ChildProcess>) {
  const children = await Promise.all(Array.from({ length: PROCESSES }, begin));
  const ended = (child: ChildProcess) => (child.exitCode ?? child.signalCode) === null && once(child, "close");
  const counts = { kills: 0, stops: 0 };
  const lines = () => readFileSync(log, "utf8").split("\n").length;
  const limit = Date.now() + 100_000;
  try {
    for (let next = LINES_PER_DISTURBANCE; ; await sleep(50)) {
      const { working } = await stores.tasks.count(server);
      if (working === 0) break;
      if (Date.now() > limit) throw new Error(`${working} tasks have not ended`);
      if (lines() < next) continue;
      next = lines() + LINES_PER_DISTURBANCE;
      const i = Math.floor(Math.random() * children.length);
      const child = children[i];
      if (!child) continue;
      if (counts.kills > counts.stops) {
        // longer than its lease: it wakes up as a late holder
        child.kill("SIGSTOP");
        setTimeout(() => child.kill("SIGCONT"), LEASE_MS * 2);
        counts.stops += 1;
      } else {
        child.kill("SIGKILL");
        counts.kills += 1;
        children[i] = await begin();
      }
    }
    for (const child of children) child.kill("SIGCONT");
    await sleep(LEASE_MS * 2); // late holders try to write now
    return counts;
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(children.map(ended));
  }
}

/** @param read every step that is kept */
function inProcesses(kind: string, where: string, schema: string, open: () => Stores, read: () => Promise<Step[]>) {
  it(`tasks in ${kind} end once each while processes are killed and stopped, and keep no step of a late holder`, async () => {
    await using stores = open();
    const log = join(folder, `${kind}.log`);
    writeFileSync(log, "");
    const tasks = Array.from({ length: TASKS }, () => newTask({ server: "shared" }));
    for (const task of tasks) await stores.tasks.create(task);
    const begin = () => start("./task-worker.ts", kind, where, schema, "shared", log, String(LEASE_MS));
    const counts = await disturb(stores, "shared", log, begin);
    expect(counts.kills).toBeGreaterThan(2);
    expect(counts.stops).toBeGreaterThan(2);

    const lines = readFileSync(log, "utf8")
      .split("\n")
      .flatMap((line) => (line.endsWith("}") ? [JSON.parse(line) as Line] : [])); // a killed process may leave half a line
    const steps = await read();
    for (const { id } of tasks) {
      const found = await stores.tasks.find(id);
      expect(found?.status).toBe("completed");
      const finished = lines.filter((line) => line.what === "finished" && line.id === id);
      expect(finished.length).toBeLessThanOrEqual(1);
      // whoever said that it finished is who did
      for (const { fence } of finished) expect(found?.result).toBe(fence);
      const own = steps.filter(({ task }) => task === id);
      expect(own.map(({ step }) => step).toSorted()).toEqual(["s0", "s1"]);
      const took = lines.filter((line) => line.what === "took" && line.id === id);
      expect(new Set(took.map(({ fence }) => fence)).size).toBe(took.length);
      for (const { step, fence } of own) {
        // a step of an earlier run was there when a later one began: it was not written afterwards
        const later = took.filter((line) => line.fence > fence);
        for (const { more } of later) expect(more).toContain(step);
      }
    }
    // what was answered is kept
    for (const { id, fence, more } of lines.filter(({ what }) => what === "recorded")) {
      expect(steps).toContainEqual({ task: id, step: more, fence });
    }
  }, 120_000);
}

describe("tasks between processes", () => {
  const path = join(folder, "shared.db");
  inProcesses(
    "sqlite",
    path,
    "",
    () => openSqlite({ path, leaseMs: LEASE_MS }),
    async () => {
      const database = new Database(path, { readonly: true });
      const rows = database.prepare("select task, step, fence from tenon_task_steps").all() as Step[]; // as selected
      database.close();
      return rows;
    },
  );
});

onPostgres("tasks between processes", "processes", (url, schema) => {
  inProcesses(
    "postgres",
    url,
    schema,
    () => openPostgres({ url, schema, leaseMs: LEASE_MS }),
    async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const { rows } = await client.query(`select task, step, fence from ${schema}.tenon_task_steps`);
      await client.end();
      return rows.map(({ task, step, fence }) => ({ task, step, fence: Number(fence) }));
    },
  );
});
