import assert from "node:assert/strict";
import { createServer, ToolError } from "@tenon/server";
import { z } from "zod";

const orders = createServer({ name: "orders", version: "1.0.0", logSink: () => undefined }).tool(
  "query_order",
  {
    input: z.object({ order_id: z.string() }),
    annotations: { readOnlyHint: true },
    output: z.object({ status: z.string() }),
  },
  ({ order_id }) => {
    if (order_id !== "ORD-001") throw new ToolError(`Order ${order_id} does not exist`);
    return { status: "delivered" };
  },
);
const { url } = await orders.listen({ port: 0 });

// #region first
import { mcpMiddleware, mcpTools, resolveModel } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { createAgent } from "langchain";

const client = createClient({ servers: { order: { url } } });
const agent = createAgent({
  model: await resolveModel("offline"), // or "deepseek:deepseek-chat", "openai:…", "anthropic:…"
  tools: await mcpTools(client),
  middleware: [mcpMiddleware()], // first in the list
});
const { messages } = await agent.invoke({
  messages: [{ role: "user", content: '/tool mcp_order_query_order {"order_id": "ORD-001"}' }],
});
// #endregion
assert.equal(messages.at(-1)?.text, '{"status":"delivered"}');

// #region artifact
import type { McpArtifact } from "@tenon/agent";
import { ToolMessage } from "langchain";

const answer = messages.find((message) => ToolMessage.isInstance(message));
const artifact: McpArtifact = answer?.artifact;
console.log(artifact.structured); // { status: "delivered" }
// #endregion
assert.deepEqual(artifact.structured, { status: "delivered" });

// #region errors
const strict = createAgent({
  model: await resolveModel("offline"),
  tools: await mcpTools(client, { toolErrors: "throw" }),
});
const run = strict.invoke({
  messages: [{ role: "user", content: '/tool mcp_order_query_order {"order_id": "ORD-009"}' }],
});
const failure = await run.catch((error) => error); // an ExecutionError
console.log(failure.code, failure.message); // "tool_error", "Order ORD-009 does not exist"
// #endregion
assert.equal(failure.name, "ExecutionError");
assert.equal(failure.code, "tool_error");

// #region runtime
import type { AgentInterceptor } from "@tenon/agent";

const authorize: AgentInterceptor<{ apiKey: string }> = (request, next) => {
  const { context, threadId, toolCallId } = request.runtime; // also state, store, writer
  console.log(threadId, toolCallId, request.server, request.name);
  return next(request.with({ headers: { Authorization: `Bearer ${context?.apiKey}` } }));
};
const authorized = createClient({ servers: { order: { url } }, interceptors: [authorize] });
const forCallers = createAgent({
  model: await resolveModel("offline"),
  tools: await mcpTools(authorized),
  contextSchema: z.object({ apiKey: z.string() }),
});
const input = { messages: [{ role: "user", content: '/tool mcp_order_query_order {"order_id": "ORD-001"}' }] };
const named = await forCallers.invoke(input, { context: { apiKey: "sk-ann" } });
// #endregion
assert.equal(named.messages.at(-1)?.text, '{"status":"delivered"}');

await client.close();
await authorized.close();
await orders.close();
