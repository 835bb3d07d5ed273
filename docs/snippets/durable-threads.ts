import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Answer, OfflineModel, type Question } from "@tenon/agent";
import { createServer } from "@tenon/server";
import { tool } from "langchain";
import { z } from "zod";

const folder = await mkdtemp(join(tmpdir(), "durable-threads-"));
const data = (name: string): string => join(folder, name);
const refunded: string[] = [];
const refund = tool(
  async ({ order }: { order: string }) => {
    refunded.push(order);
    return `${order} refunded`;
  },
  {
    name: "refund",
    description: "Refunds an order",
    schema: { type: "object", properties: { order: { type: "string" } }, required: ["order"] },
  },
);
const tools = [refund];
const model = new OfflineModel({
  reply: ({ text, results: [result] }) =>
    result ? { text: result.text } : { calls: [{ name: "refund", args: { order: /ORD-\d+/.exec(text)?.[0] ?? "" } }] },
});
const approve: Answer = { decisions: [{ type: "approve" }] };
const asked: Question[] = [];
const ask = (question: Question): Answer => {
  asked.push(question);
  return approve;
};

// #region first
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { approvals, orderedCheckpoints, runInteractive } from "@tenon/agent";
import { openSqlite } from "@tenon/store/sqlite";
import { createAgent } from "langchain";

const stores = openSqlite({ path: data("leases.db") });
const checkpointer = orderedCheckpoints(SqliteSaver.fromConnString(data("threads.db")));
const agent = createAgent({ model, tools, checkpointer, middleware: [approvals(tools, { refund: true })] });

const { reply } = await runInteractive(agent, "Refund ORD-001", {
  threadId: "customer-7",
  leases: stores.leases, // one run at a time, in all processes on these files
  ask,
});
// #endregion
assert.equal(reply, "ORD-001 refunded");
assert.equal(asked.length, 1);
assert.deepEqual(refunded, ["ORD-001"]);

await agent.invoke({ messages: ["Refund ORD-002"] }, { configurable: { thread_id: "customer-8" } });

// #region own
import { Command } from "@langchain/langgraph";
import { invokeAgent, openQuestions, resumeValue, withThreadLease } from "@tenon/agent";

/** For a program with a loop of its own: answers what is open on a thread. */
async function answer(threadId: string, given: Answer): Promise<void> {
  await withThreadLease(stores.leases, threadId, async (signal) => {
    const [question] = await openQuestions(agent, threadId); // inside: another process may have answered it
    if (!question) return;
    const resume = { [question.id]: resumeValue(question, given) };
    await invokeAgent(agent, new Command({ resume }), { configurable: { thread_id: threadId }, signal });
  });
}
await answer("customer-8", approve);
// #endregion
assert.deepEqual(refunded, ["ORD-001", "ORD-002"]);
await answer("customer-8", approve);
assert.deepEqual(refunded, ["ORD-001", "ORD-002"]);

await agent.invoke({ messages: ["Refund ORD-003"] }, { configurable: { thread_id: "customer-9" } });

// #region restart
const later = await runInteractive(agent, undefined, { threadId: "customer-9", leases: stores.leases, ask });
// #endregion
assert.equal(later.reply, "ORD-003 refunded");

const shown: string[] = [];

// #region busy
import { ThreadBusyError } from "@tenon/agent";

await withThreadLease(stores.leases, "customer-7", async () => {
  try {
    await answer("customer-7", approve); // or in another process
  } catch (error) {
    if (!(error instanceof ThreadBusyError)) throw error;
    shown.push(error.message); // code "thread_busy", retryable, data: { threadId, holder, until }
  }
});
// #endregion
assert.match(shown[0] ?? "", /^Thread "customer-7" is being worked on by /);

const refundsOf = (order: string): number => refunded.filter((one) => one === order).length;
async function openShop(port = 0) {
  const server = createServer({ name: "shop", version: "1.0.0", logSink: () => {} });
  const input = z.object({ order: z.string() });
  server.tool("refund", { description: "Refunds an order", input, idempotent: true }, async ({ order }) => {
    refunded.push(order);
    return `${order} refunded`;
  });
  const listening = await server.listen({ port });
  return { url: listening.url, close: () => listening.close(10).then(() => server.close()) };
}
const shop = await openShop();
const { url } = shop;
const shopModel = new OfflineModel({
  reply: ({ results: [result] }) =>
    result ? { text: result.text } : { calls: [{ name: "mcp_shop_refund", args: { order: "ORD-010" } }] },
});

// #region away
import { mcpMiddleware, mcpTools } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { ConnectionError } from "@tenon/core";

/** What a program does when it starts: goes on with a thread. False when that has to be tried again later. */
async function goOn(threadId: string): Promise<boolean> {
  const client = createClient({ servers: { shop: { url } } });
  try {
    const tools = await mcpTools(client); // those of the servers that can be reached now
    const rules = approvals(tools, { "shop/refund": true }, { client });
    const middleware = [mcpMiddleware({ client }), rules];
    const agent = createAgent({ model: shopModel, tools, checkpointer, middleware });
    await runInteractive(agent, undefined, { threadId, leases: stores.leases, ask });
    return true;
  } catch (error) {
    if (!(error instanceof ConnectionError) || error.code !== "call_waits") throw error;
    shown.push(`${error.server} cannot be reached; your request waits`);
    return false;
  } finally {
    await client.close();
  }
}
// #endregion
const first = createClient({ servers: { shop: { url } } });
const shopTools = await mcpTools(first);
const begun = createAgent({
  model: shopModel,
  tools: shopTools,
  checkpointer,
  middleware: [mcpMiddleware({ client: first }), approvals(shopTools, { "shop/refund": true }, { client: first })],
});
await runInteractive(begun, "Refund ORD-010", { threadId: "customer-10", ask: () => undefined });
await first.close();
await shop.close();
assert.equal(await goOn("customer-10"), false);
assert.equal(await goOn("customer-10"), false);
assert.equal(refundsOf("ORD-010"), 0);
const back = await openShop(Number(new URL(url).port));
assert.equal(await goOn("customer-10"), true);
assert.equal(refundsOf("ORD-010"), 1);
assert.deepEqual(shown.slice(1), Array(2).fill("shop cannot be reached; your request waits"));
await back.close();

// #region memory
import { SqliteStore } from "@tenon/agent/sqlite-store";

const store = new SqliteStore(data("memory.db"), { ttl: { defaultTtl: 60 * 24 * 365 } }); // minutes
await store.put(["user_prefs"], "u_001", { language: "en", limit: 2 });
await store.put(["user_prefs"], "u_002", { language: "zh", limit: 10 }, undefined, { ttl: 30 });
const few = await store.search(["user_prefs"], { filter: { limit: { $lt: 5 } } });
const remembering = createAgent({ model, tools, checkpointer, store }); // tools and interceptors find it in their runtime
// #endregion
assert.deepEqual(
  few.map(({ key }) => key),
  ["u_001"],
);
assert.ok(remembering);

await store.stop();
await stores.close();
checkpointer.db.close();
await rm(folder, { recursive: true });
