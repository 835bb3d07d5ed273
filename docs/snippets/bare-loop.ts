import assert from "node:assert/strict";
import { createServer } from "@tenon/server";
import { z } from "zod";
import { openaiEndpoint } from "../../packages/agent/test/openai-endpoint.ts";

const server = createServer({ name: "stores", version: "1.0.0" })
  .tool(
    "revenue",
    { description: "What a store took in today", input: z.object({ store: z.string() }) },
    ({ store }) => (store === "ST001" ? 12850.5 : 9320),
  )
  .tool(
    "close_store",
    { input: z.object({ store: z.string() }), annotations: { destructiveHint: true } },
    () => "closed",
  );
const { url } = await server.listen({ port: 0 });
await using scripted = await openaiEndpoint([
  {
    calls: [
      { id: "call_1", name: "mcp_stores_revenue", args: { store: "ST001" } },
      { id: "call_2", name: "mcp_stores_revenue", args: { store: "ST002" } },
    ],
  },
  { text: "ST001 took in more." },
]);
const endpoint = { baseUrl: scripted.baseUrl };

// #region first
import { bareLoop } from "@tenon/agent";
import { createClient } from "@tenon/client";

await using client = createClient({ servers: { stores: { url } } });
const { reply, messages } = await bareLoop({
  client,
  model: "qwen3:8b",
  endpoint, // { baseUrl: "http://127.0.0.1:11434/v1", apiKey }
  messages: [{ role: "user", content: "Which store took in more today, ST001 or ST002?" }],
  onEvent: (event) => event.type === "tool-end" && console.error(`${event.name}: ${event.text}`),
});
// #endregion
assert.equal(reply, "ST001 took in more.");
assert.equal(messages.length, 5);

await using dangerous = await openaiEndpoint([
  { calls: [{ id: "call_1", name: "mcp_stores_close_store", args: { store: "ST001" } }] },
  { text: "I was not allowed to." },
]);
const asked: string[] = [];
const confirm = async (text: string) => {
  asked.push(text);
  return false;
};
// #region approve
const careful = await bareLoop({
  client,
  model: "qwen3:8b",
  endpoint: { baseUrl: dangerous.baseUrl },
  messages: [{ role: "user", content: "Close ST001." }],
  policy: { "stores/revenue": false }, // by server and wire name; the rest by the server's annotations
  approve: async ({ server, tool, args }) =>
    (await confirm(`${server}/${tool} ${JSON.stringify(args)}?`)) ? { type: "approve" } : { type: "reject" },
  maxTurns: 8,
  stream: true,
  signal: AbortSignal.timeout(120_000),
});
// #endregion
assert.deepEqual(asked, ['stores/close_store {"store":"ST001"}?']);
assert.equal(careful.status, "done");

await using own = await openaiEndpoint([
  { calls: [{ id: "call_1", name: "mcp_stores_revenue", args: { store: "ST002" } }] },
]);

// #region parts
import { dispatch, type OpenAIToolCall, toOpenAITools } from "@tenon/agent";

const tools = await client.listTools();
const response = await fetch(`${own.baseUrl}/chat/completions`, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({
    model: "qwen3:8b",
    messages: [{ role: "user", content: "How is ST002 doing?" }],
    tools: toOpenAITools(tools),
  }),
});
const body = (await response.json()) as { choices: Array<{ message: { tool_calls?: OpenAIToolCall[] } }> };
const calls = body.choices[0]?.message.tool_calls ?? [];
const answers = await Promise.all(calls.map((call) => dispatch(client, tools, call)));
// #endregion
assert.deepEqual(answers, [{ role: "tool", tool_call_id: "call_1", content: "9320" }]);

// #region search
import { estimateTokens, findTools } from "@tenon/agent";

const fitting = estimateTokens(tools) > 8_000 ? findTools(tools, "revenue of a store", { limit: 10 }) : tools;
// #endregion
assert.equal(fitting.length, 2);
assert.equal(findTools(tools, "revenue of a store")[0]?.wireName, "revenue");

await client.close();
await server.close();
