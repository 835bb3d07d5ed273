import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OfflineModel } from "@tenon/agent";
import { createServer } from "@tenon/server";
import { HumanMessage } from "langchain";
import { z } from "zod";

const folder = await mkdtemp(join(tmpdir(), "durable-questions-"));
const data = (name: string): string => join(folder, name);
const refunded: string[] = [];
const shop = createServer({ name: "shop", version: "1.0.0", logSink: () => {} });
shop.tool("refund", { input: z.object({ order: z.string() }), idempotent: true }, async ({ order }, ctx) => {
  const answer = await ctx.elicit(`Why is ${order} refunded?`, z.object({ reason: z.string() }));
  if (answer.action !== "accept") return `${order} not refunded`;
  await ctx.step("refund", () => void refunded.push(order));
  return `${order} refunded: ${answer.data.reason}`;
});
const listening = await shop.listen({ port: 0 });
const { url } = listening;
const model = new OfflineModel({
  reply: ({ text, results: [result] }) =>
    result
      ? { text: result.text }
      : { calls: [{ name: "mcp_shop_refund", args: { order: /ORD-\d+/.exec(text)?.[0] ?? "" } }] },
});

// #region first
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { mcpMiddleware, mcpTools, runInteractive } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { createAgent } from "langchain";

const client = createClient({ servers: { shop: { url } }, elicitation: "interrupt" });
const agent = createAgent({
  model,
  tools: await mcpTools(client),
  middleware: [mcpMiddleware()], // first in the list
  checkpointer: SqliteSaver.fromConnString(data("threads.db")),
});

const evening = await runInteractive(agent, "Refund ORD-001", { threadId: "customer-7", ask: () => undefined });
// evening.status is "paused", evening.questions what is open; the process may end here

const morning = await runInteractive(agent, undefined, {
  threadId: "customer-7", // the same thread, in whatever process
  ask: async (question) =>
    question.kind === "elicitation" ? { answers: await fillIn(question.questions) } : { decisions: [] },
});

// #endregion

import type { ElicitationAnswer, ElicitationRequest } from "@tenon/client";

async function fillIn(
  questions: Readonly<Record<string, ElicitationRequest>>,
): Promise<Record<string, ElicitationAnswer>> {
  return Object.fromEntries(
    Object.keys(questions).map((key) => [key, { action: "accept", content: { reason: "damaged" } }]),
  );
}
assert.equal(evening.status, "paused");
assert.equal(morning.reply, "ORD-001 refunded: damaged");

// #region own
import { Command } from "@langchain/langgraph";
import { invokeAgent, openQuestions, resumeValue } from "@tenon/agent";

const config = { configurable: { thread_id: "customer-8" } };
await invokeAgent(agent, { messages: [new HumanMessage("Refund ORD-002")] }, config);

const [question] = await openQuestions(agent, "customer-8"); // any time later, in any process
if (question?.kind === "elicitation") {
  const answer = { answers: await fillIn(question.questions) };
  await invokeAgent(agent, new Command({ resume: { [question.id]: resumeValue(question, answer) } }), config);
}
// #endregion
assert.deepEqual(refunded, ["ORD-001", "ORD-002"]);

// #region legacy
const tools = await mcpTools(client, { legacyQuestions: "replay" });
// #endregion
assert.equal(tools.length, 1);

await client.close();
await listening.close();
await shop.close();
await rm(folder, { recursive: true });
