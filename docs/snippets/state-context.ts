import assert from "node:assert/strict";
import { MemorySaver, StateSchema } from "@langchain/langgraph";
import { resolveModel } from "@tenon/agent";
import { createServer } from "@tenon/server";
import { createAgent } from "langchain";

const got: unknown[] = [];
const orders = createServer({ name: "orders", version: "1.0.0", logSink: () => undefined });
orders.tool("look", {}, () => "looked");
orders.resource("order://rules", {}, () => "thirty days");
orders.use((request, next) => {
  if (request.method === "tools/call" || request.method === "resources/read")
    got.push(request.meta["dev.tenon/context"]);
  return next();
});
const { url } = await orders.listen({ port: 0 });
const model = await resolveModel("offline");
const saver = new MemorySaver();

// #region first
import { contextMeta, mcpMiddleware, mcpTools, stateContext } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { z } from "zod";

const context = stateContext(z.object({ user_id: z.string(), order_id: z.string().optional() }), {
  fields: { user_id: (_state, run) => (run as { userId: string }).userId }, // the program knows who asks
});
const client = createClient({
  servers: { order: { url } },
  interceptors: [contextMeta(context, { servers: ["order"] })], // nobody else learns it
});
const agent = createAgent({
  model,
  tools: await mcpTools(client),
  middleware: [context.middleware, mcpMiddleware()], // checked after every update
  stateSchema: new StateSchema({ order_id: z.union([z.string(), z.number()]).optional() }),
  contextSchema: z.object({ userId: z.string() }),
  checkpointer: saver,
});
// #endregion
await agent.invoke(
  { messages: [{ role: "user", content: "/tool mcp_order_look" }], order_id: 7 },
  { configurable: { thread_id: "t" }, context: { userId: "ann" } },
);
assert.deepEqual(got, [{ user_id: "ann", order_id: "7", trace_id: (got[0] as { trace_id: string }).trace_id }]);
const traceId = (got[0] as { trace_id: string }).trace_id;

// #region trace
import { stateByTrace } from "@tenon/agent";

const found = await stateByTrace(saver, traceId); // from a log of the server, say
const { threadId, checkpointId, values } = found ?? {};
// #endregion
assert.equal(threadId, "t");
assert.equal(values?.order_id, 7);
assert.ok(checkpointId);

const contextSchema = z.object({ userId: z.string() });

// #region node
import { StateGraph } from "@langchain/langgraph";
import { toolCaller } from "@tenon/agent";

const call = await toolCaller(client); // its tools for nodes
const State = new StateSchema({ order_id: z.string(), found: z.unknown().optional(), rules: z.string().optional() });
const graph = new StateGraph(State, contextSchema)
  .addNode("look_up", async (_state, config) => ({ found: await call("mcp_order_look", {}, config) }))
  .addNode("read", async (state, config) => {
    const runtime = { threadId: config.executionInfo?.threadId, context: config.context };
    const meta = context.meta(state, runtime);
    const [rules] = await client.readResources("order", ["order://rules"], { meta, runtime });
    return { rules: rules?.asString() };
  })
  .addEdge("__start__", "look_up")
  .addEdge("look_up", "read")
  .compile({ checkpointer: saver });
// #endregion
const own = await graph.invoke({ order_id: "8" }, { configurable: { thread_id: "u" }, context: { userId: "bob" } });
assert.deepEqual([own.found, own.rules], ["looked", "thirty days"]);
const [called, read] = got.slice(1).map((one) => ({ ...(one as object), trace_id: "" }));
assert.deepEqual(called, { user_id: "bob", order_id: "8", trace_id: "" });
assert.deepEqual(read, called);

// #region own
const made = context.of(
  { user_id: "from the state", order_id: new URL("https://shop.example/o/7"), note: "not declared" },
  { threadId: "t", context: { userId: "ann" } },
);
// #endregion
assert.deepEqual({ ...made, trace_id: "" }, { user_id: "ann", order_id: "https://shop.example/o/7", trace_id: "" });
assert.throws(() => context.of({ order_id: { n: Number.NaN } }, { context: { userId: "ann" } }), {
  code: "invalid_context_value",
});
await client.close();
await orders.close();
