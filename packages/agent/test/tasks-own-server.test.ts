import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createClient, type ElicitationRequest, renderText } from "@tenon/client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { program } from "../../../test/programs.ts";
import { type Answer, type Question, type RunEvent, runInteractive } from "../src/index.ts";
import { openSaver } from "./killed-agent.ts";
import { startTaskAgent, type TaskJob } from "./task-agent.ts";

// One side is killed, then the other: what the server promises of its tasks, and what agent and client promise of following
// them, meet here.

const folder = mkdtempSync(join(tmpdir(), "tenon-own-tasks-"));
const database = join(folder, "shop.sqlite");
const effects = join(folder, "effects.txt");
const shopProgram = await program("./task-shop.ts", import.meta.url);
const agentProgram = await program("./task-agent.ts", import.meta.url);

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
async function until(what: () => boolean): Promise<void> {
  for (let left = 750; !what(); left--) {
    if (left === 0) throw new Error("it did not come to be within 15 s");
    await wait(20);
  }
}
/** The effects of a label: a step that is repeated, since its process was killed before it was written down, has the same key. */
function lines(label: string): string[] {
  const all = existsSync(effects) ? readFileSync(effects, "utf8").split("\n") : [];
  const once = new Set(all.filter((line) => line.startsWith(`${label} `)));
  return [...once].map((line) => line.split(" ").slice(0, 2).join(" "));
}

async function startShop(port = 0) {
  const child: ChildProcess & { stdout: NonNullable<ChildProcess["stdout"]> } = spawn(
    process.execPath,
    [shopProgram, database, effects, String(port)],
    { env: { ...process.env, TENON_TASK_SHOP: "1" }, stdio: ["ignore", "pipe", "inherit"] },
  );
  const [url] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return {
    url,
    port: Number(new URL(url).port),
    async kill() {
      const exit = once(child, "exit");
      child.kill("SIGKILL");
      await exit;
    },
  };
}

let shop: Awaited<ReturnType<typeof startShop>>;
beforeAll(async () => {
  shop = await startShop();
});
afterAll(async () => {
  await shop?.kill();
  rmSync(folder, { recursive: true, force: true });
});
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function restart() {
  await shop.kill();
  shop = await startShop(shop.port);
}

const jobOf = (label: string, args: Record<string, unknown>): TaskJob => ({
  url: shop.url,
  threadId: label,
  args: { label, ...args },
  tool: "work",
  interrupts: true,
  saver: { sqlite: join(folder, "threads.sqlite") },
  point: "none",
});

async function goOn(job: TaskJob, ask: (question: Question) => Answer | undefined, input?: string) {
  const saver = await openSaver(job.saver);
  const { agent, client } = await startTaskAgent(job, saver);
  const events: RunEvent[] = [];
  const onEvent = (event: RunEvent) => void events.push(event);
  try {
    const result = await runInteractive(agent, input, { threadId: job.threadId, ask, onEvent });
    return { ...result, events };
  } finally {
    await client.close();
    await saver.close();
  }
}

const yes = { action: "accept" as const, content: { value: true } };
/** Says yes to the questions with these messages. */
const answering =
  (...messages: string[]) =>
  (question: Question): Answer | undefined => {
    if (question.kind === "approval") return undefined;
    const chosen = Object.entries(question.questions).filter(([, { message }]) => messages.includes(message));
    return chosen.length > 0
      ? { answers: Object.fromEntries(chosen.map(([key, one]) => [key, accept(one)])) }
      : undefined;
  };
function accept(question: ElicitationRequest) {
  const [field] = question.mode === "form" ? question.fields : [];
  return field ? { action: "accept" as const, content: { [field.name]: true } } : yes;
}

describe("a task of a server of ours", () => {
  it("goes on where it was although the server, then the agent, then both are killed; each step runs once", async () => {
    const job = jobOf("night", { steps: 30, ask: true });
    const child = spawn(process.execPath, [agentProgram], {
      env: { ...process.env, TENON_TASK_AGENT: JSON.stringify(job) },
      stdio: "ignore",
    });
    const ended = once(child, "exit");
    await until(() => lines("night").length >= 3);
    await restart();
    await until(() => lines("night").length >= 8);
    child.kill("SIGKILL");
    await ended;
    const paused = await goOn(job, () => undefined);
    expect(paused.status).toBe("paused");
    const progress = paused.events.filter(({ type }) => type === "progress");
    expect(progress.at(-1)).toMatchObject({ progress: 30, total: 30, message: "step 30", percent: 100 });

    await restart();
    const partly = await goOn(job, answering("sure"));
    expect(partly.status).toBe("paused");
    expect(partly.questions).toHaveLength(1);
    await restart();
    const finished = await goOn(job, answering("sure", "loud"));
    expect(finished.reply).toContain("success=");
    expect(finished.reply).toContain("night");
    const steps = Array.from({ length: 30 }, (_, n) => `night ${n + 1}`);
    expect(lines("night")).toEqual([...steps, "night end"]);
  }, 120_000);

  it("is followed by a plain client, which answers by its handler and may be another one each time", async () => {
    const connect = (asked: string[] = []) => {
      const client = createClient({
        servers: { shop: { url: shop.url } },
        elicitation: (question) => {
          asked.push(question.message);
          return accept(question);
        },
      });
      closing.push(() => client.close());
      return client;
    };
    const first = connect();
    const [tool] = await first.listTools();
    expect(tool).toMatchObject({ wireName: "work", task: "required" });
    const started = await first.tasks.start("shop", "work", { label: "plain", steps: 5, ask: true });
    await first.close();
    const asked: string[] = [];
    const second = connect(asked);
    const outcome = await second.tasks.resume("shop", started.id ?? "", { tool: "work" });
    expect(renderText(outcome.content)).toContain("plain");
    expect(asked).toEqual(["sure", "loud"]);
    expect(await second.tasks.get("shop", started.id ?? "")).toMatchObject({ status: "completed" });
    await expect(second.tasks.get("shop", "no-such-task")).rejects.toMatchObject({ code: "task_gone" });
    const outOfTime = new AbortController();
    const call = second.callTool(
      "shop",
      "work",
      { label: "long", steps: 500, ask: false },
      { signal: outOfTime.signal },
    );
    const failed = expect(call).rejects.toMatchObject({ code: "cancelled" });
    await until(() => lines("long").length >= 2);
    outOfTime.abort();
    await failed;
    await wait(500);
    const done = lines("long").length;
    await wait(500);
    expect(lines("long").length).toBe(done);
  });

  it("is one task for a call that is made again with its key", async () => {
    const client = createClient({ servers: { shop: { url: shop.url } } });
    closing.push(() => client.close());
    const args = { label: "once", steps: 2, ask: false };
    const meta = { "dev.tenon/idempotency-key": "once-and-for-all" };
    const both = await Promise.all([1, 2].map(() => client.callTool("shop", "work", args, { meta })));
    expect(both.map(({ isError }) => isError)).toEqual([false, false]);
    expect(lines("once")).toEqual(["once 1", "once 2"]);
  });
});
