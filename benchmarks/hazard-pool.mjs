// Why Tenon never pools protocol instances: with a pool under createMcpHandler, the handler of a caller who left goes on, and
// its late notification is written into the next caller's answer, because that one got the same instance and uses the same
// JSON-RPC id. Ends with 1 when the hazard is gone (then the fast path could be simpler) or when Tenon has it.
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { request } from "./lib/wire.mjs";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function build() {
  const server = new McpServer({ name: "x", version: "1" });
  server.registerTool("slow", { inputSchema: z.object({ who: z.string() }) }, async ({ who }, ctx) => {
    for (let progress = 0; progress < 4; progress++) {
      await sleep(60);
      const params = { progressToken: "p", progress, message: `secret of ${who}` };
      await ctx.mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
    }
    return { content: [{ type: "text", text: `done ${who}` }] };
  });
  return server;
}

async function leaks(pooled) {
  const idle = [];
  const handler = createMcpHandler(() => {
    const server = (pooled && idle.pop()) || build();
    if (pooled) server.server.onclose = () => idle.push(server);
    return server;
  });
  const call = (who, signal) => {
    const { body, headers } = request("modern", "tools/call", { name: "slow", arguments: { who } });
    return handler.fetch(new Request("http://127.0.0.1/mcp", { method: "POST", headers, body, signal }));
  };
  const leaving = new AbortController();
  const alice = call("alice", leaving.signal).catch(() => undefined);
  await sleep(30);
  leaving.abort();
  await sleep(10);
  const heard = await (await call("bob")).text();
  await alice;
  await handler.close();
  return heard.includes("secret of alice");
}

const [fresh, pooled] = [await leaks(false), await leaks(true)];
console.log(
  `an instance per request: ${fresh ? "leaks" : "no leak"}; pooled instances: ${pooled ? "leak" : "no leak"}`,
);
process.exit(!fresh && pooled ? 0 : 1);
