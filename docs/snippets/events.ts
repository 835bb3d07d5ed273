import assert from "node:assert/strict";
import { createServer } from "@tenon/server";

const shown: string[] = [];
const terminal = { write: (line: string) => shown.push(line) };
const orders = createServer({ name: "orders", version: "1.0.0", logSink: () => undefined }).tool(
  "batch",
  {},
  async (_, ctx) => {
    const { action } = await ctx.elicit("Go on?", ["yes", "no"]);
    await ctx.log.info("started");
    await ctx.progress(1, 2, "half");
    return action;
  },
);
const { url } = await orders.listen({ port: 0 });

// #region first
import { createClient } from "@tenon/client";

const client = createClient({
  servers: { order: { url } },
  events: {
    onProgress: ({ percent, message }, { server, tool }) => terminal.write(`${server}/${tool} ${percent}% ${message}`),
    onLog: ({ level, data }, { callId }) => terminal.write(`${callId} ${level}: ${JSON.stringify(data)}`),
    onElicitation: (question, { server }) => terminal.write(`${server} asks: ${question.message}`),
    onServerState: ({ server, health }) => terminal.write(`${server} is ${health}`),
  },
  elicitation: () => ({ action: "accept", content: { value: "yes" } }), // answers; the events only tell
});
await client.callTool("order", "batch");
// #endregion
assert.deepEqual(
  shown.filter((line) => !line.includes("info")),
  ["order is connecting", "order is up", "order asks: Go on?", "order/batch 50% half"],
);
assert.ok(shown.some((line) => /^call-\w+-1 info:/.test(line)));

// #region old
await using old = createClient({
  servers: { order: { url } },
  sampling: {
    approve: async ({ messages }) => messages.length < 10, // ask the person here
    handler: async () => ({ role: "assistant", content: { type: "text", text: "40" }, model: "my-model" }),
  },
  roots: [{ uri: "file:///home/ann/project", name: "project" }],
});
// #endregion
assert.equal((await old.listTools()).length, 1);
await client.close();
await orders.close();
