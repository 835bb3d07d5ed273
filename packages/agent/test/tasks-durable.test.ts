import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemorySaver } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { program } from "../../../test/programs.ts";
import { serverProcess } from "../../client/test/tasks-scene.ts";
import { readKept } from "../../client/test/tasks-server.ts";
import {
  type Answer,
  invokeAgent,
  openQuestions,
  type Question,
  type RunEvent,
  runInteractive,
  ThreadLeaseLostError,
} from "../src/index.ts";
import { openSaver, type SaverAt } from "./killed-agent.ts";
import { POINTS, startTaskAgent, type TaskJob, yes } from "./task-agent.ts";

const database = process.env.TENON_TEST_DATABASE_URL;
const schema = `tenon_tasks_${process.pid}`;
const folder = mkdtempSync(join(tmpdir(), "tenon-agent-tasks-"));
const agentProgram = await program("./task-agent.ts", import.meta.url);
const file = join(folder, "tasks.json");
const ok = { action: "accept" as const, content: { ok: true } };

let shop: Awaited<ReturnType<typeof serverProcess>>;
beforeAll(async () => {
  shop = await serverProcess(file);
  if (!database) return;
  const saver = PostgresSaver.fromConnString(database, { schema });
  await saver.setup();
  await saver.end();
});
afterAll(async () => {
  await shop?.kill();
  rmSync(folder, { recursive: true, force: true });
  if (!database) return;
  const { default: pg } = await import("pg");
  const client = new pg.Client(database);
  await client.connect();
  await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await client.end();
});

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
async function until(what: () => boolean): Promise<void> {
  for (let left = 500; !what(); left--) {
    if (left === 0) throw new Error("it did not come to be within 10 s");
    await wait(20);
  }
}

/** The tasks that were begun for a label, and what was sent to all of them. */
function begun(label: string) {
  const { tasks, log } = readKept(file);
  return { tasks: Object.values(tasks).filter(({ args }) => args.label === label), log };
}
const count = (method: string) => readKept(file).log.filter((entry) => entry.method === method).length;

/** Starts the job in a process of its own. */
function launch(job: TaskJob) {
  const env = { ...process.env, TENON_TASK_AGENT: JSON.stringify(job) };
  const child = spawn(process.execPath, [agentProgram], { env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  const limit = setTimeout(() => child.kill("SIGTERM"), 60_000);
  const ended = once(child, "exit").then(([, signal]) => {
    clearTimeout(limit);
    return { signal, said };
  });
  return { ended, kill: () => child.kill("SIGKILL") };
}

/** Continues the thread of a job in this process. */
async function goOn(job: TaskJob, ask: (question: Question) => Answer | undefined = yes) {
  const saver = await openSaver(job.saver);
  const { agent, client } = await startTaskAgent(job, saver);
  try {
    return await runInteractive(agent, undefined, { threadId: job.threadId, ask });
  } finally {
    await client.close();
    await saver.close();
  }
}

const stores: ReadonlyArray<{ store: string; at: SaverAt | undefined }> = [
  { store: "SQLite", at: { sqlite: join(folder, "threads.sqlite") } },
  { store: "Postgres", at: database ? { postgres: database, schema } : undefined },
];

describe.each(stores)("a thread in $store whose call became a task", ({ store, at }) => {
  const jobOf = (label: string, more: Partial<TaskJob> = {}): TaskJob => ({
    url: shop.url,
    threadId: label,
    args: { label, ask: ["sure"] },
    tool: "work",
    interrupts: true,
    saver: at ?? { sqlite: "" },
    point: "none",
    ...more,
  });

  describe.skipIf(!at)("whose process is killed", () => {
    it.each(POINTS)("%s: another one follows the same task to its end", async (point) => {
      const label = `${store} ${point}`;
      const job = jobOf(label, { point });
      expect(await launch(job).ended).toEqual({ signal: "SIGKILL", said: "" });
      const finished = await goOn(job);
      expect(finished.reply).toContain(`"done":"${label}"`);
      expect(finished.reply).toContain('"sure":{"action":"accept"');
      expect(begun(label).tasks).toHaveLength(1);
    });

    it.each(["begun", "recorded"] as const)("%s, with a handler for questions: the same", async (point) => {
      const label = `${store} handler ${point}`;
      const job = jobOf(label, { point, interrupts: false });
      expect(await launch(job).ended).toEqual({ signal: "SIGKILL", said: "" });
      expect((await goOn(job)).reply).toContain(`"done":"${label}"`);
      expect(begun(label).tasks).toHaveLength(1);
    });

    it("in the middle of the task, and its server too: the same", async () => {
      const label = `${store} middle`;
      const job = jobOf(label, { args: { label, ms: 4_000, ask: ["sure"] } });
      const child = launch(job);
      await until(() => begun(label).tasks.length > 0 && count("tasks/get") > 0);
      await wait(300);
      child.kill();
      await child.ended;
      await shop.kill();
      shop = await serverProcess(file, shop.port);
      const looks = count("tasks/get");
      const going = goOn(job);
      await until(() => count("tasks/get") > looks);
      await shop.kill();
      await wait(500);
      shop = await serverProcess(file, shop.port);
      expect((await going).reply).toContain(`"done":"${label}"`);
      expect(begun(label).tasks).toHaveLength(1);
    });
  });
});

describe("a question of a task", () => {
  const jobOf = (label: string, args: Record<string, unknown>): TaskJob => ({
    url: shop.url,
    threadId: label,
    args: { label, ...args },
    tool: "work",
    interrupts: true,
    saver: { sqlite: join(folder, "questions.sqlite") },
    point: "none",
  });

  it("interrupts the run like any other, and names its task", async () => {
    const job = jobOf("interrupt", { ask: ["sure"] });
    const { agent, client } = await startTaskAgent(job, new MemorySaver());
    const paused = await runInteractive(agent, "go", { threadId: "t", ask: () => undefined });
    expect(paused.status).toBe("paused");
    const [task] = begun("interrupt").tasks;
    expect(await openQuestions(agent, "t")).toEqual([
      {
        kind: "elicitation",
        id: expect.any(String),
        elicitationId: expect.any(String),
        server: "shop",
        tool: "work",
        toolCallId: expect.any(String),
        round: 1,
        task: task?.id,
        questions: { sure: expect.objectContaining({ mode: "form", message: "sure?" }) },
      },
    ]);
    await client.close();
  });

  it("is asked again where an answer does not fit; some may be answered first, and the others in another process", async () => {
    const job = jobOf("partly", { ask: ["a", "b"] });
    const saver = await openSaver(job.saver);
    const { agent, client } = await startTaskAgent(job, saver);
    const asked: unknown[] = [];
    const replies: (Answer | undefined)[] = [{ answers: {} }, { answers: { a: ok } }, undefined];
    const paused = await runInteractive(agent, "go", {
      threadId: job.threadId,
      ask: (question) => {
        if (question.kind === "elicitation") asked.push([Object.keys(question.questions), question.error]);
        return replies.shift();
      },
    });
    await client.close();
    await saver.close();
    expect(paused.status).toBe("paused");
    expect(asked).toEqual([
      [["a", "b"], undefined],
      [["a", "b"], expect.stringContaining("cannot be used")],
      [["b"], undefined],
    ]);
    expect(begun("partly").tasks[0]?.answers).toMatchObject({ a: { answer: ok } });
    const again: string[][] = [];
    const finished = await goOn(job, (question) => {
      if (question.kind === "elicitation") again.push(Object.keys(question.questions));
      return yes(question);
    });
    expect(again).toEqual([["b"]]);
    expect(finished.reply).toContain('"done":"partly"');
    expect(begun("partly").tasks).toHaveLength(1);
  });

  it("is not asked when the task came to its end meanwhile", async () => {
    const job = jobOf("over", { ask: ["sure"] });
    const saver = await openSaver(job.saver);
    const { agent, client } = await startTaskAgent(job, saver);
    await runInteractive(agent, "go", { threadId: job.threadId, ask: () => undefined });
    const [task] = begun("over").tasks;
    await client.tasks.cancel("shop", task?.id ?? "");
    await client.close();
    await saver.close();
    const finished = await goOn(job);
    expect(finished.reply).toContain("error=task");
    expect(finished.reply).toContain("was cancelled");
    expect(begun("over").tasks).toHaveLength(1);
  });
});

describe("a run whose call became a task", () => {
  const job = (label: string, args: Record<string, unknown> = {}) => ({
    url: shop.url,
    args: { label, ...args },
    tool: "work",
    interrupts: true,
  });

  it("tells its progress in the stream of the run", async () => {
    const { agent, client } = await startTaskAgent(job("told", { ms: 600, counts: true }), new MemorySaver());
    const events: RunEvent[] = [];
    const onEvent = (event: RunEvent) => void events.push(event);
    await runInteractive(agent, "go", { threadId: "t", ask: yes, onEvent });
    const progress = events.filter(({ type }) => type === "progress");
    expect(progress.length).toBeGreaterThan(1);
    expect(progress[0]).toMatchObject({ server: "shop", tool: "work", total: 600, message: "counting" });
    await client.close();
  });

  it.each([
    ["is stopped: the task is cancelled", () => new Error("stop"), 1],
    ["lost its thread to another one: the task goes on", () => new ThreadLeaseLostError("t"), 0],
  ])("%s", async (name, reason, cancels) => {
    const { agent, client } = await startTaskAgent(job(name, { ms: 60_000 }), new MemorySaver());
    const before = count("tasks/cancel");
    const ending = new AbortController();
    const run = invokeAgent(agent, { messages: ["go"] }, { configurable: { thread_id: "t" }, signal: ending.signal });
    const failed = expect(run).rejects.toBeDefined();
    await until(() => begun(name).tasks.length > 0);
    await wait(300);
    ending.abort(reason());
    await failed;
    await wait(300);
    expect(count("tasks/cancel") - before).toBe(cancels);
    await client.close();
  });

  it("whose client is closed can be continued: nothing is written down about a task that goes on", async () => {
    const saver = new MemorySaver();
    const first = await startTaskAgent(job("closed", { ms: 1_000 }), saver);
    const run = runInteractive(first.agent, "go", { threadId: "t", ask: yes });
    const failed = expect(run).rejects.toMatchObject({ code: "closed" });
    await until(() => begun("closed").tasks.length > 0);
    await wait(200);
    await first.client.close();
    await failed;
    const second = await startTaskAgent(job("closed", { ms: 1_000 }), saver);
    const finished = await runInteractive(second.agent, undefined, { threadId: "t", ask: yes });
    expect(finished.reply).toContain('success={"done":"closed"');
    expect(begun("closed").tasks).toHaveLength(1);
    await second.client.close();
  });
});
