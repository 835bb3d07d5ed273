import { fileURLToPath } from "node:url";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { mcpMiddleware, mcpTools, OfflineModel, runInteractive } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { createAgent } from "langchain";
import { z } from "zod";
import { check } from "../lib/check.ts";
import weather from "./server.ts";

// by hand it listens on 8000; here on a free port, so that examples never collide
const { url } = await weather.listen({ port: 0 });
const mathServer = fileURLToPath(new URL("../math/server.ts", import.meta.url));
await using client = createClient({
  servers: { math: { command: process.execPath, args: ["--import", "tsx", mathServer] }, weather: { url } },
});
const umbrella = tool(({ report }: { report: string }) => (report.includes("雨") ? "带伞" : "不用带伞"), {
  name: "umbrella",
  description: "Says whether to take an umbrella.",
  schema: z.object({ report: z.string() }),
});

// The model picks tools by the question; to it a local tool, a child process and an HTTP server look the same.
const model = new OfflineModel({
  reply({ text, results: [first, second] }) {
    const city = /北京|上海|深圳|火星/.exec(text)?.[0];
    if (city) {
      if (!first) return { calls: [{ name: "mcp_weather_get_weather", args: { location: city } }] };
      if (!second) return { calls: [{ name: "umbrella", args: { report: first.text } }] };
      return { text: `${city}：${first.text}，${second.text}` };
    }
    if (!first) return { calls: [{ name: "mcp_math_multiply", args: { a: 8, b: 12 } }] };
    return { text: first.text };
  },
});
const agent = createAgent({
  model,
  tools: [umbrella, ...(await mcpTools(client))],
  middleware: [mcpMiddleware()],
  checkpointer: new MemorySaver(),
});
const ask = async (question: string): Promise<string> =>
  (await runInteractive(agent, question, { threadId: question, ask: () => undefined })).reply;

check("the HTTP server and the local tool", await ask("北京今天天气怎么样？"), "北京：晴 22–28 °C 北风3级，不用带伞");
check("the weather of another city", await ask("深圳呢？"), "深圳：阵雨 26–31 °C 南风4级，带伞");
check("no data is a normal answer", await ask("火星的天气？"), /没有 火星 的天气数据/);
check("the child process, by the same agent", await ask("8 × 12 = ?"), "96");

await client.close();
await weather.close();
