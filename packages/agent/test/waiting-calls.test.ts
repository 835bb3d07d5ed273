import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { createClient } from "@tenon/client";
import { ConnectionError } from "@tenon/core";
import { createServer } from "@tenon/server";
import { createAgent, HumanMessage } from "langchain";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { program } from "../../../test/programs.ts";
import {
  approvals,
  invokeAgent,
  MultiServerMCPClient,
  mcpMiddleware,
  mcpTools,
  OfflineModel,
  type Question,
  runInteractive,
} from "../src/index.ts";
import { type Job, openSaver, type SaverAt, startAgent, UNSENT, yes } from "./killed-agent.ts";
import { callingModel } from "./scripted-model.ts";

const database = process.env.TENON_TEST_DATABASE_URL;
const schema = `tenon_wait_${process.pid}`;
const folder = mkdtempSync(join(tmpdir(), "tenon-wait-"));
const effects = join(folder, "refunds.txt");
const killed = await program("./killed-agent.ts", import.meta.url);

/** A server that can go away and come back at its address, with the tools it is given then. */
async function startShop(
  tools: readonly string[] = ["refund"],
  port = 0,
  before: () => Promise<void> = async () => {},
) {
  const server = createServer({ name: "shop", version: "1.0.0", logSink: () => {} });
  for (const tool of tools) {
    const input = z.object({ order: z.string(), ask: z.boolean().default(false) });
    server.tool(tool, { description: "Refunds an order", input, idempotent: true }, async ({ order, ask }, ctx) => {
      if (ask) await ctx.elicit(`Refund ${order}?`, z.object({ ok: z.boolean() }));
      await before();
      await ctx.step("refund", async () => appendFileSync(effects, `${order}\n`));
      return `refunded ${order}`;
    });
  }
  const listening = await server.listen({ port });
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= listening.close(10).then(() => server.close());
    return closed;
  };
  onTestFinished(close);
  return { url: listening.url, port: Number(new URL(listening.url).port), close };
}

const refundsOf = (order: string) =>
  readFileSync(effects, "utf8")
    .split("\n")
    .filter((line) => line === order).length;

/** Each call has one answer. */
function expectAnswered(values: Readonly<Record<string, unknown>>): readonly BaseMessage[] {
  const messages = values.messages as BaseMessage[]; // the state of createAgent
  const called = messages.flatMap((one) => (AIMessage.isInstance(one) ? (one.tool_calls ?? []) : []));
  const answered = messages.flatMap((one) => (ToolMessage.isInstance(one) ? [one.tool_call_id] : []));
  expect(answered.sort()).toEqual(called.map(({ id }) => id).sort());
  return messages;
}

beforeAll(async () => {
  writeFileSync(effects, "");
  if (!database) return;
  const saver = PostgresSaver.fromConnString(database, { schema });
  await saver.setup();
  await saver.end();
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  if (!database) return;
  const { default: pg } = await import("pg");
  const client = new pg.Client(database);
  await client.connect();
  await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await client.end();
});

const stores: ReadonlyArray<{ store: string; at: SaverAt | undefined }> = [
  { store: "SQLite", at: { sqlite: join(folder, "threads.sqlite") } },
  { store: "Postgres", at: database ? { postgres: database, schema } : undefined },
];

describe.each(stores)("a call of a process that was killed, in $store", ({ store, at }) => {
  it.skipIf(!at).each(UNSENT)(
    "when it was %s waits while its server is down, and is made once when the server is back",
    async (point) => {
      if (!at) return;
      const threadId = `${store} ${point}`;
      const shop = await startShop();
      const job: Job = {
        ...{ url: shop.url, threadId, orders: [threadId], approved: true, asks: false, saver: at, point },
        audit: join(folder, "audit.sqlite"),
      };
      const env = { ...process.env, TENON_KILLED_AGENT: JSON.stringify(job) };
      const child = spawn(process.execPath, [killed], { env, stdio: ["ignore", "ignore", "inherit"] });
      const [, signal] = await once(child, "exit");
      expect(signal).toBe("SIGKILL");
      await shop.close();

      const saver = await openSaver(at);
      const asked: Question[] = [];
      const ask = (question: Question) => {
        asked.push(question);
        return yes(question);
      };
      const go = async (input?: string) => {
        const { agent, client } = await startAgent(job, saver);
        return runInteractive(agent, input, { threadId, ask }).finally(() => client.close());
      };
      const waits = { name: "ConnectionError", code: "call_waits", server: "shop", retryable: true };
      await expect(go()).rejects.toMatchObject(waits);
      await expect(go("plain and now?")).rejects.toMatchObject(waits);
      // what was asked before can be answered now; what was not is asked when the tool is known
      expect(asked).toHaveLength(point === "asked-about" ? 1 : 0);

      await startShop(["refund"], shop.port);
      const done = await go();
      expect(done.reply).toBe(`done: success=refunded ${threadId}`);
      expect(asked).toHaveLength(point === "approved" ? 0 : 1);
      expect(refundsOf(threadId)).toBe(1);
      const messages = expectAnswered((await go("plain next")).values);
      expect(messages.filter((one) => one.type === "human").map((one) => one.text)).toEqual(["go", "plain next"]);
      expect(refundsOf(threadId)).toBe(1);
      await saver.close();
    },
    60_000,
  );
});

interface Scene {
  /** Calls the model makes. */
  calls: Parameters<typeof callingModel>;
  /** Named as in the client's configuration. */
  urls: Record<string, string>;
  saver: MemorySaver;
  /** Whether the middleware is given the client. Default true. */
  told?: boolean;
  gated?: boolean;
}

/** An agent as a program makes it at its start. */
async function start({ calls, urls, saver, told = true, gated = true }: Scene) {
  const client = createClient({
    servers: Object.fromEntries(Object.entries(urls).map(([name, url]) => [name, { url }])),
    elicitation: "interrupt",
  });
  onTestFinished(() => client.close());
  const tools = await mcpTools(client);
  const given = told ? { client } : {};
  const policy = Object.fromEntries(tools.map(({ name }) => [name, gated]));
  return createAgent({
    model: callingModel(...calls),
    tools,
    middleware: [mcpMiddleware(given), approvals(tools, policy, { derive: false, ...given })],
    checkpointer: saver,
  });
}

const threadId = "t";
const refund = (order: string, server = "shop") => ({ name: `mcp_${server}_refund`, args: { order } });
const later = () => undefined;

describe("a call of a tool that the agent does not have", () => {
  it("is told to the model when it made the tool up, although a server is down", async () => {
    const shop = await startShop();
    await shop.close();
    const scene = { calls: [refund("o-invented")], urls: { shop: shop.url }, saver: new MemorySaver() };
    const result = await runInteractive(await start(scene), "go", { threadId, ask: yes });
    expect(result.reply).toContain("mcp_shop_refund is not a valid tool");
  });

  it("is told to the model when the server is up and has the tool no more, or is not configured any more", async () => {
    const shop = await startShop();
    const [other, none] = [await startShop(["other"]), await startShop([])];
    const places: ReadonlyArray<Record<string, string>> = [{ shop: other.url }, { shop: none.url }, {}];
    for (const urls of places) {
      const scene = {
        calls: [refund("o-gone")],
        urls: { shop: shop.url } as Record<string, string>,
        saver: new MemorySaver(),
      };
      await runInteractive(await start(scene), "go", { threadId, ask: later });
      const done = await runInteractive(await start({ ...scene, urls }), undefined, { threadId, ask: yes });
      expect(done.reply).toContain("mcp_shop_refund is not a valid tool");
      expectAnswered(done.values);
    }
    expect(refundsOf("o-gone")).toBe(0);
  });

  it("waits where nobody tells whether its server is down, and also when the server came back after the agent was made", async () => {
    const shop = await startShop();
    const scene = { calls: [refund("o-back")], urls: { shop: shop.url }, saver: new MemorySaver() };
    await runInteractive(await start(scene), "go", { threadId, ask: later });
    await shop.close();
    const [deaf, early] = [await start({ ...scene, told: false }), await start(scene)];
    await expect(runInteractive(deaf, undefined, { threadId, ask: yes })).rejects.toMatchObject({ code: "call_waits" });
    await startShop(["refund"], shop.port);
    await expect(runInteractive(early, undefined, { threadId, ask: yes })).rejects.toMatchObject({
      code: "call_waits",
      message: expect.stringContaining("the agent was made without it"),
    });
    const done = await runInteractive(await start(scene), undefined, { threadId, ask: yes });
    expect(done.reply).toBe("done: success=refunded o-back");
    expect(refundsOf("o-back")).toBe(1);
  });

  it("lets the calls beside it finish, and they are not made again", async () => {
    const shop = await startShop();
    const slow = () => new Promise<void>((resolve) => setTimeout(resolve, 300));
    const depot = await startShop(["refund"], 0, slow);
    const scene = {
      calls: [refund("o-shop"), refund("o-depot", "depot")],
      urls: { shop: shop.url, depot: depot.url },
      saver: new MemorySaver(),
    };
    await runInteractive(await start(scene), "go", { threadId, ask: later });
    await shop.close();
    const agent = await start(scene);
    await expect(runInteractive(agent, undefined, { threadId, ask: yes })).rejects.toMatchObject({ server: "shop" });
    expect(refundsOf("o-depot")).toBe(1);
    await depot.close(); // its result is saved: nobody asks it again
    await startShop(["refund"], shop.port);
    const done = await runInteractive(await start(scene), undefined, { threadId, ask: yes });
    expect(done.reply).toBe("done: success=refunded o-shop | success=refunded o-depot");
    expect([refundsOf("o-shop"), refundsOf("o-depot")]).toEqual([1, 1]);
  });

  it("keeps the server's question open while the server is down", async () => {
    const shop = await startShop();
    const call = { name: "mcp_shop_refund", args: { order: "o-asked", ask: true } };
    const scene = { calls: [call], urls: { shop: shop.url }, saver: new MemorySaver(), gated: false };
    await runInteractive(await start(scene), "go", { threadId, ask: later });
    await shop.close();
    const down = await start(scene);
    await expect(runInteractive(down, undefined, { threadId, ask: yes })).rejects.toMatchObject({ code: "call_waits" });
    await startShop(["refund"], shop.port);
    const done = await runInteractive(await start(scene), undefined, { threadId, ask: yes });
    // the server that came back has other keys: it asks once more
    expect(done.reply).toBe("done: success=refunded o-asked");
    expect(refundsOf("o-asked")).toBe(1);
  });

  it("waits for servers of MultiServerMCPClient as well", async () => {
    const shop = await startShop();
    const saver = new MemorySaver();
    const begin = async () => {
      const mcpServers = { shop: { url: shop.url } };
      const client = new MultiServerMCPClient({
        mcpServers,
        onConnectionError: "ignore",
        prefixToolNameWithServerName: true,
      });
      onTestFinished(() => client.close());
      const tools = await client.getTools();
      return createAgent({
        model: callingModel({ name: "shop__refund", args: { order: "o-multi" } }),
        tools,
        middleware: [mcpMiddleware({ client }), approvals(tools, { "shop/refund": true }, { client })],
        checkpointer: saver,
      });
    };
    await runInteractive(await begin(), "go", { threadId, ask: later });
    await shop.close();
    await expect(runInteractive(await begin(), undefined, { threadId, ask: yes })).rejects.toMatchObject({
      code: "call_waits",
    });
    await startShop(["refund"], shop.port);
    const done = await runInteractive(await begin(), undefined, { threadId, ask: yes });
    expect(done.reply).toBe("done: success=refunded o-multi");
    expect(refundsOf("o-multi")).toBe(1);
  });

  it("ends invokeAgent with the error itself, and so does a model that fails", async () => {
    const shop = await startShop();
    const scene = { calls: [refund("o-raw")], urls: { shop: shop.url }, saver: new MemorySaver(), gated: false };
    const agent = await start(scene);
    const config = { configurable: { thread_id: threadId }, interruptBefore: ["tools" as const] };
    await invokeAgent(agent, { messages: [new HumanMessage("go")] }, config);
    await shop.close();
    const again = invokeAgent(await start(scene), null, { configurable: { thread_id: threadId } });
    await expect(again).rejects.toMatchObject({ name: "ConnectionError", code: "call_waits" });

    const offline = new ConnectionError("no model", { code: "no_model" });
    const failing = createAgent({
      model: new OfflineModel({
        reply() {
          throw offline;
        },
      }),
      tools: [],
      middleware: [mcpMiddleware()],
      checkpointer: new MemorySaver(),
    });
    const fails = { configurable: { thread_id: "fails" } };
    await expect(invokeAgent(failing, { messages: [new HumanMessage("go")] }, fails)).rejects.toBe(offline);
    await expect(runInteractive(failing, undefined, { threadId: "fails", ask: yes })).rejects.toBe(offline);
  });
});
