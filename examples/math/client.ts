import { fileURLToPath } from "node:url";
import { MemorySaver } from "@langchain/langgraph";
import { mcpMiddleware, mcpTools, OfflineModel, runInteractive } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { createAgent } from "langchain";
import { check } from "../lib/check.ts";

await using client = createClient({
  servers: {
    math: {
      command: process.execPath,
      args: ["--import", "tsx", fileURLToPath(new URL("server.ts", import.meta.url))],
    },
  },
});

const tools = await mcpTools(client);
check(
  "the catalog is merged and sorted",
  tools.map((tool) => tool.name),
  ["mcp_math_add", "mcp_math_echo", "mcp_math_multiply"],
);
const [add] = await client.listTools();
check(
  "int is integer for the model",
  JSON.stringify(add?.inputSchema),
  /"a":\{"type":"integer".*"b":\{"type":"integer"/,
);

// A model that works out (3 + 5) × 12 one call at a time: the only part of this example that is not real.
const model = new OfflineModel({
  reply({ results: [sum, product] }) {
    if (!sum) return { calls: [{ name: "mcp_math_add", args: { a: 3, b: 5 } }] };
    if (!product) return { calls: [{ name: "mcp_math_multiply", args: { a: Number(sum.text), b: 12 } }] };
    return { text: `(3 + 5) × 12 = ${product.text}` };
  },
});
const agent = createAgent({ model, tools, middleware: [mcpMiddleware()], checkpointer: new MemorySaver() });

const calls: string[] = [];
const { reply } = await runInteractive(agent, "(3 + 5) × 12 = ?", {
  threadId: "math",
  ask: () => undefined,
  onEvent: (event) => event.type === "tool-start" && calls.push(event.name),
});
check("two calls", calls, ["mcp_math_add", "mcp_math_multiply"]);
check("the answer", reply, "(3 + 5) × 12 = 96");

const text = "中文, emoji 🪵🔨, and “quotes”";
const echoed = await client.callTool("math", "echo", { text });
check("text survives the pipe", echoed.content[0], { type: "text", text });
