import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { audit } from "@tenon/client/interceptors";
import { createServer } from "@tenon/server";
import { type AuditRecord, isProcessGone, type Stores } from "@tenon/store";
import { openSqlite } from "@tenon/store/sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { program } from "../../../test/programs.ts";
import { orderedCheckpoints, runInteractive } from "../src/index.ts";
import { type Job, openSaver, POINTS, type Point, type SaverAt, startAgent, yes } from "./killed-agent.ts";

const database = process.env.TENON_TEST_DATABASE_URL;
const schema = `tenon_kill_${process.pid}`;
const folder = mkdtempSync(join(tmpdir(), "tenon-kill-"));
const effects = join(folder, "refunds.txt");
const trail = join(folder, "audit.sqlite");
const killed = await program("./killed-agent.ts", import.meta.url);

let audited: Stores;
let shop: Awaited<ReturnType<typeof startShop>>;
/** Runs when a refund was made, before its answer leaves. */
let onRefund: () => Promise<void> = async () => {};

async function startShop() {
  const server = createServer({ name: "shop", version: "1.0.0", logSink: () => {} });
  server.tool(
    "refund",
    { description: "Refunds an order", input: z.object({ order: z.string(), ask: z.boolean() }), idempotent: true },
    async ({ order, ask }, ctx) => {
      if (ask) {
        const answer = await ctx.elicit(`Refund ${order}?`, z.object({ ok: z.boolean() }));
        if (answer.action !== "accept" || !answer.data.ok) return `not ${order}`;
      }
      await ctx.step("refund", async () => {
        appendFileSync(effects, `${order}\n`);
        await onRefund();
      });
      return `refunded ${order}`;
    },
  );
  const listening = await server.listen({ port: 0 });
  return {
    url: listening.url,
    async close() {
      await listening.close(10);
      await server.close();
    },
  };
}

beforeAll(async () => {
  writeFileSync(effects, "");
  shop = await startShop();
  audited = openSqlite({ path: trail });
  if (database) {
    const saver = PostgresSaver.fromConnString(database, { schema });
    await saver.setup();
    await saver.end();
  }
});
afterAll(async () => {
  await shop?.close();
  await audited?.close();
  rmSync(folder, { recursive: true, force: true });
  if (database) {
    const { default: pg } = await import("pg");
    const client = new pg.Client(database);
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.end();
  }
});

/** Runs the job in a process of its own; how that ended, and what it said. */
async function runKilled(job: Job): Promise<{ signal: string | null; said: string }> {
  const env = { ...process.env, TENON_KILLED_AGENT: JSON.stringify(job) };
  const child = spawn(process.execPath, [killed], { env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  const exit = once(child, "exit");
  if (job.point === "server-ran") {
    onRefund = async () => {
      child.kill("SIGKILL");
      await exit;
    };
  }
  const limit = setTimeout(() => child.kill("SIGTERM"), 60_000);
  const [, signal] = await exit;
  clearTimeout(limit);
  onRefund = async () => {};
  return { signal, said };
}

/** Each order is one call in the trail; each of its passes has one outcome, and the last one is that of the resumed run. */
async function expectWhole(records: readonly AuditRecord[], orders: readonly string[]): Promise<void> {
  const calls = new Map<string, AuditRecord[]>();
  for (const record of records) calls.set(record.callId, [...(calls.get(record.callId) ?? []), record]);
  const about = [...calls.values()].map(([intent]) => (intent?.data.args as { order?: string } | undefined)?.order); // kept with `redact`
  expect(about.sort()).toEqual([...orders].sort());
  for (const entries of calls.values()) {
    const passes = entries.filter(({ kind }) => kind === "intent").map(({ pass }) => pass);
    expect(passes).toEqual(passes.map((_, i) => i + 1));
    const ends = entries.filter(({ kind }) => kind === "outcome");
    expect(ends.map(({ pass }) => pass).sort()).toEqual(passes);
    expect(ends.at(-1)?.data).toMatchObject({ outcome: "ok" });
    for (const { data } of ends) expect(["ok", "suspended", "unknown"]).toContain(data.outcome);
  }
  expect(await audited.audit.sweep({ isGone: isProcessGone })).toEqual([]);
  expect((await audited.audit.verify()).intact).toBe(true);
}

const stores: ReadonlyArray<{ store: string; at: SaverAt | undefined }> = [
  { store: "SQLite", at: { sqlite: join(folder, "threads.sqlite") } },
  { store: "Postgres", at: database ? { postgres: database, schema } : undefined },
];
interface Shape {
  readonly calls: string;
  readonly count: number;
  readonly approved: boolean;
  readonly asks: boolean;
  readonly points: readonly Point[];
}

const shapes: readonly Shape[] = [
  { calls: "one call", count: 1, approved: false, asks: true, points: POINTS },
  { calls: "two parallel calls", count: 2, approved: false, asks: true, points: POINTS },
  { calls: "an approval, then a question on the same call", count: 1, approved: true, asks: true, points: POINTS },
  // nothing but the key says that such a call was made before
  {
    calls: "an approved call that asks nothing",
    count: 1,
    approved: true,
    asks: false,
    points: ["server-ran", "before-checkpoint"],
  },
];

describe.each(stores)("threads in $store", ({ store, at }) => {
  describe.skipIf(!at).each(shapes)("$calls", ({ calls, count, points, ...how }) => {
    it.each(points)(
      "killed %s: another process finishes it, with one refund for each call",
      async (point) => {
        if (!at) return;
        const threadId = `${store} ${calls} ${point}`;
        const orders = Array.from({ length: count }, (_, n) => `${threadId} ${n}`);
        const job: Job = { url: shop.url, threadId, orders, ...how, saver: at, audit: trail, point };
        expect(await runKilled(job)).toEqual({ signal: "SIGKILL", said: "" });

        const saver = await openSaver(at);
        const { agent, client } = await startAgent(job, saver, [audit({ sink: audited.audit.sink(), redact: {} })]);
        const finished = await runInteractive(agent, undefined, { threadId, ask: yes });
        const refunded = orders.map((order) => `success=refunded ${order}`).join(" | ");
        expect(finished.reply).toBe(`done: ${refunded}`);
        const next = await runInteractive(agent, "plain next", { threadId, ask: yes });
        expect(next.reply).toBe("done: ");
        await client.close();
        await saver.close();

        await expectWhole(await audited.audit.read({ thread: threadId, limit: 1_000 }), orders);
        const made = readFileSync(effects, "utf8").split("\n");
        expect(orders.map((order) => made.filter((line) => line === order).length)).toEqual(orders.map(() => 1));
        const messages = next.values.messages as unknown[]; // the state of createAgent
        const called = messages.flatMap((one) => (AIMessage.isInstance(one) ? (one.tool_calls ?? []) : []));
        const answered = messages.flatMap((one) => (ToolMessage.isInstance(one) ? [one.tool_call_id] : []));
        expect(answered.sort()).toEqual(called.map(({ id }) => id).sort());
      },
      90_000,
    );
  });
});

describe("a process whose clock was hours ahead", () => {
  it("leaves a thread that another one, whose clock is right, brings to its end", async () => {
    const saver = { sqlite: join(folder, "ahead.sqlite") };
    const job: Job = {
      ...{ url: shop.url, threadId: "ahead", orders: ["ahead"], approved: true, asks: true, saver, audit: trail },
      ...{ point: "after-question", aheadMs: 2 * 3_600_000 },
    };
    expect(await runKilled(job)).toEqual({ signal: "SIGKILL", said: "" });
    const opened = await openSaver(saver);
    const { agent, client } = await startAgent(job, orderedCheckpoints(opened));
    const finished = await runInteractive(agent, undefined, { threadId: "ahead", ask: yes });
    expect(finished).toMatchObject({ status: "done", reply: "done: success=refunded ahead" });
    const next = await runInteractive(agent, "plain next", { threadId: "ahead", ask: yes });
    expect(next.reply).toBe("done: ");
    await client.close();
    await opened.close();
  });
});
