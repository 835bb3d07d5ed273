import { bareLoop, type ChatMessage } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { openaiEndpoint } from "../../packages/agent/test/openai-endpoint.ts";
import { check } from "../lib/check.ts";
import archive from "./archive.ts";
import stores from "./server.ts";

const urls = await Promise.all([stores, archive].map(async (server) => (await server.listen({ port: 0 })).url));
const [url = "", oldFiles = ""] = urls;
await using client = createClient({ servers: { stores: { url }, old_files: { url: oldFiles } } });

const date = "2026-03-01";
const revenue = (id: string, store_id: string, tool = "get_daily_revenue") => ({
  id,
  name: `mcp_stores_${tool}`,
  args: { store_id, date },
});
// stands where DeepSeek or OpenAI would, answers by script, and refuses what they refuse
await using model = await openaiEndpoint(
  [
    { calls: [revenue("call_1", "ST001"), revenue("call_2", "ST002"), revenue("call_3", "ST003")] },
    {
      calls: [
        revenue("call_4", "ST999"),
        revenue("call_5", "ST999", "audit_revenue"),
        { id: "call_6", name: "mcp_stores_read_file", args: { path: "a.txt" } },
        { id: "call_7", name: "mcp_old_files_read_file", args: { path: "a.txt" } },
      ],
    },
    { text: "ST003（天河店）最高：15704.2 元。" },
  ],
  "deepseek",
);

const tools = await client.listTools();
check("names carry the server, also one with _ in it", tools.map(({ name }) => name).sort(), [
  "mcp_old_files_read_file",
  "mcp_stores_audit_revenue",
  "mcp_stores_get_daily_revenue",
  "mcp_stores_read_file",
]);

const [list, profile] = await client.readResources("stores", ["stores://list", "stores://ST003/profile"]);
check("the list of stores", JSON.parse(list?.asString() ?? ""), ["ST001", "ST002", "ST003"]);
check("a store's profile", JSON.parse(profile?.asString() ?? "").name, "天河店");
const [prompt] = await client.getPrompt("stores", "compare_revenue", { date });
const question = prompt?.content.type === "text" ? prompt.content.text : "";
check("the prompt names the day", question, new RegExp(date));

const messages: ChatMessage[] = [
  { role: "system", content: `门店：${list?.asString()}` },
  { role: "user", content: question },
];
const result = await bareLoop({
  client,
  model: "deepseek-chat",
  endpoint: { baseUrl: model.baseUrl, apiKey: "sk-example" },
  messages,
  onEvent: (event) => event.type === "tool-end" && console.log(`  ${event.name}: ${event.text}`),
});

const texts = result.messages.flatMap((message) => (message.role === "tool" ? [message.content] : []));
check("three stores, asked in one turn", texts.slice(0, 3), ["12850.5", "9320", "15704.2"]);
check("a ToolError is read by the model", texts[3], "store ST999 does not exist");
check("an accident is not", [/ledger|10\.0\.0\.7/.test(texts[4] ?? ""), texts[4] !== ""], [false, true]);
check("equal tool names reach their own servers", texts.slice(5), ["shop: a.txt", "archive: a.txt"]);
check("the answer", [result.status, result.reply, result.turns], ["done", "ST003（天河店）最高：15704.2 元。", 3]);

await client.close();
await Promise.all([stores.close(), archive.close()]);
