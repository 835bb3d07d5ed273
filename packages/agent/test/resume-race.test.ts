import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { program } from "../../../test/programs.ts";
import type { Order, Report } from "./resumer.ts";

const ROUNDS = 50;
const LIMIT_MS = 30_000;
const folder = mkdtempSync(join(tmpdir(), "tenon-resume-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const resumer = await program("./resumer.ts", import.meta.url);

/** A process that resumes threads, as the test sees it. */
interface Resumer {
  tell(order: Order): void;
  /** The next thing it says that nobody has heard yet. */
  hear(): Promise<Report>;
  stop(): Promise<void>;
}

function start(...args: string[]): Resumer {
  const child: ChildProcess = fork(resumer, args, { execArgv: [] });
  const heard: Report[] = [];
  let listener: ((report: Report) => void) | undefined;
  const tellListener = (report: Report): void => {
    if (listener) listener(report);
    else heard.push(report);
    listener = undefined;
  };
  child.on("message", (message) => tellListener(message as Report)); // from resumer.ts, which sends nothing else
  child.on("exit", (code) => tellListener({ is: "failed", code: `ended with ${code}` }));
  return {
    tell: (order) => void child.send(order),
    hear: () =>
      new Promise((resolve, reject) => {
        const first = heard.shift();
        if (first) return resolve(first);
        const timer = setTimeout(() => reject(new Error("a process says nothing")), LIMIT_MS);
        listener = (report) => {
          clearTimeout(timer);
          resolve(report);
        };
      }),
    stop: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve();
        child.once("exit", () => resolve());
        child.kill("SIGKILL");
      }),
  };
}

/** Two processes on the same checkpointer and the same leases. */
function race(name: string, ...args: string[]): void {
  describe(`two processes that resume the same thread of a ${name} checkpointer at once`, () => {
    let both: [Resumer, Resumer];
    beforeAll(async () => {
      both = [start(...args), start(...args)];
      for (const one of both) expect(await one.hear()).toEqual({ is: "ready" });
    }, 60_000);
    afterAll(async () => {
      for (const one of both) await one.stop();
    });

    /** Brings a thread to its question and has both processes approve it. */
    async function approveTwice(thread: string, how: "resume" | "resume without a lease"): Promise<[Report, Report]> {
      both[0].tell({ do: "ask", thread });
      expect(await both[0].hear()).toMatchObject({ is: "ended" });
      for (const one of both) one.tell({ do: how, thread });
      return [await both[0].hear(), await both[1].hear()];
    }

    it(`make one refund and one typed refusal, ${ROUNDS} times`, async () => {
      const wins = [0, 0];
      for (let round = 0; round < ROUNDS; round += 1) {
        const reports = await approveTwice(`round ${round}`, "resume");
        const winner = reports[0].is === "refunding" ? 0 : 1;
        expect(reports[winner]).toEqual({ is: "refunding" });
        expect(reports[1 - winner]).toEqual({ is: "failed", code: "thread_busy" });
        // the lease is held until the winner has saved what it did
        const [won, lost] = winner === 0 ? both : [both[1], both[0]];
        lost.tell({ do: "resume", thread: `round ${round}` });
        expect(await lost.hear()).toEqual({ is: "failed", code: "thread_busy" });
        won.tell({ do: "finish" });
        expect(await won.hear()).toEqual({ is: "ended", reply: "done: success=refunded" });
        wins[winner] = (wins[winner] ?? 0) + 1;
      }
      expect((wins[0] ?? 0) + (wins[1] ?? 0)).toBe(ROUNDS);
    }, 90_000);

    it("take a thread over from a process that was killed, when its lease is over", async () => {
      const thread = "killed";
      const [killed, heir] = [start(...args), both[1]];
      expect(await killed.hear()).toEqual({ is: "ready" });
      killed.tell({ do: "ask", thread });
      expect(await killed.hear()).toMatchObject({ is: "ended" });
      killed.tell({ do: "resume", thread, lease: { ttlMs: 5_000 } });
      expect(await killed.hear()).toEqual({ is: "refunding" });
      heir.tell({ do: "resume", thread });
      expect(await heir.hear()).toEqual({ is: "failed", code: "thread_busy" });
      await killed.stop();
      heir.tell({ do: "resume", thread, lease: { waitMs: LIMIT_MS } });
      expect(await heir.hear()).toEqual({ is: "refunding" });
      heir.tell({ do: "finish" });
      expect(await heir.hear()).toEqual({ is: "ended", reply: "done: success=refunded" });
    }, 90_000);

    it("would both refund without a lease", async () => {
      expect(await approveTwice("no lease", "resume without a lease")).toEqual([
        { is: "refunding" },
        { is: "refunding" },
      ]);
    }, 60_000);
  });
}

race("SQLite", "sqlite", join(folder, "threads.db"));

const url = process.env.TENON_TEST_DATABASE_URL;
if (url === undefined) {
  it.skip("the same on Postgres: set TENON_TEST_DATABASE_URL to run it", () => undefined);
} else {
  const schema = `tenon_resume_${process.pid}_${Date.now()}`;
  const admin = new pg.Pool({ connectionString: url, max: 1 });
  afterAll(async () => {
    for (const name of [schema, `${schema}_threads`]) await admin.query(`drop schema if exists ${name} cascade`);
    await admin.end();
  });
  // the saver's own tables are made once: its setup does not expect two processes at a time
  beforeAll(async () => {
    const saver = PostgresSaver.fromConnString(url, { schema: `${schema}_threads` });
    await saver.setup();
    await saver.end();
  });
  race("Postgres", "postgres", url, schema);
}
