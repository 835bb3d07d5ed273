import assert from "node:assert/strict";
import { createServer } from "@tenon/server";
import { createAgent, HumanMessage } from "langchain";

const orders = createServer({ name: "orders", version: "1.0.0", logSink: () => undefined }).tool(
  "refund",
  {},
  () => "refunded",
);
const { url } = await orders.listen({ port: 0 });

// #region first
import { Command, MemorySaver, ReducedValue, StateSchema } from "@langchain/langgraph";
import { type AgentInterceptor, mcpMiddleware, mcpTools, OfflineModel, toolMessageOf } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { z } from "zod";

const stateSchema = new StateSchema({
  audit: new ReducedValue(
    z.record(z.string(), z.string()).default(() => ({})),
    { reducer: (all: Record<string, string>, more: Record<string, string>) => ({ ...all, ...more }) },
  ),
});
const note: AgentInterceptor = async (request, next) => {
  const outcome = await next(request);
  if (!("isError" in outcome)) return outcome; // another interceptor's message or command
  return new Command({
    update: {
      messages: [toolMessageOf(request, outcome)],
      audit: { [request.runtime.toolCallId ?? ""]: request.name },
    },
    goto: outcome.isError ? [] : "__end__",
  });
};
const client = createClient({ servers: { order: { url } }, interceptors: [note] });
const model = new OfflineModel({ reply: () => ({ calls: [{ name: "mcp_order_refund", args: {} }] }) });
const agent = createAgent({
  model,
  tools: await mcpTools(client),
  middleware: [mcpMiddleware()],
  stateSchema,
  checkpointer: new MemorySaver(),
});
const config = { configurable: { thread_id: "t1" } };
const result = await agent.invoke({ messages: [new HumanMessage("refund it")] }, config);
console.log(result.messages.at(-1)?.text, Object.values(result.audit)); // "refunded", ["refund"]: the model was asked once
// #endregion
assert.equal(result.messages.at(-1)?.text, "refunded");
assert.deepEqual(Object.values(result.audit), ["refund"]);
assert.equal(result.messages.length, 3);

// #region graph
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { AIMessage } from "langchain";

const escalate: AgentInterceptor = async (request, next) =>
  request.name === "refund" ? new Command({ goto: "human" }) : next(request);
const gated = createClient({ servers: { order: { url } }, interceptors: [escalate] });
const plan = () => ({
  messages: [new AIMessage({ content: "", tool_calls: [{ name: "mcp_order_refund", args: {}, id: "c1" }] })],
});
const graph = new StateGraph(MessagesAnnotation)
  .addNode("plan", plan)
  .addNode("tools", new ToolNode(await mcpTools(gated)), { ends: ["human"] })
  .addNode("human", () => ({ messages: [new AIMessage("A colleague will look at it")] }))
  .addEdge("__start__", "plan")
  .addEdge("plan", "tools")
  .compile();
const handed = await graph.invoke({ messages: [new HumanMessage("refund it")] });
// #endregion
assert.equal(handed.messages.at(-1)?.text, "A colleague will look at it");

await client.close();
await gated.close();
await orders.close();
