import assert from "node:assert/strict";
import { createServer } from "@tenon/server";
import { z } from "zod";

const weather = createServer({ name: "weather", version: "1.0.0", logSink: () => undefined })
  .tool("get_weather", { input: z.object({ location: z.string() }) }, ({ location }) => `sunny in ${location}`)
  .resource("weather://today", {}, () => "dry")
  .prompt("forecast", { input: z.object({ place: z.string() }) }, ({ place }) => `A forecast for ${place}`);
const { url } = await weather.listen({ port: 0 });
const lines: string[] = [];

// #region first
import { MultiServerMCPClient } from "@tenon/agent"; // was: from "@langchain/mcp-adapters"

const client = new MultiServerMCPClient({
  mcpServers: {
    weather: { transport: "http", url, headers: { Authorization: "Bearer token123" } },
    // math: { transport: "stdio", command: "npx", args: ["-y", "@modelcontextprotocol/server-math"] },
  },
  useStandardContentBlocks: true,
  onConnectionError: "ignore",
});
const tools = await client.getTools();
// #endregion
assert.deepEqual(
  tools.map(({ name }) => name),
  ["get_weather"],
);

// #region native
import { mcpTools } from "@tenon/agent";
import { createClient } from "@tenon/client";

const native = createClient({
  servers: { weather: { url, headers: { Authorization: "Bearer token123" } } },
  naming: "plain", // the default is mcp_{server}_{tool}
  events: { onLog: ({ level, data }, { server }) => lines.push(`[${server}] ${level} ${data}`) },
});
const same = await mcpTools(native, { servers: ["weather"] });
// #endregion
assert.equal(await same[0]?.invoke({ location: "Rome" }), "sunny in Rome");

// #region python
const interceptors = new MultiServerMCPClient({
  mcpServers: { weather: { url } },
  toolInterceptors: [
    async (request, next) => {
      const args = { ...request.args, location: request.args.location ?? "Rome" };
      return next(request.with({ args, headers: { "X-User": String(request.runtime.threadId) } }));
    },
  ],
  callbacks: {
    onProgress: (progress, total, message, { serverName, toolName }) =>
      lines.push(`${serverName}/${toolName} ${progress}/${total} ${message}`),
  },
  handleToolErrors: true,
});
const [today] = await interceptors.getResources("weather", { uris: ["weather://today"] });
const messages = await interceptors.getPrompt("weather", "forecast", { arguments: { place: "Rome" } });
console.log(today?.asString(), messages[0]?.text); // "dry", "A forecast for Rome"
// #endregion
assert.equal(today?.asString(), "dry");
assert.equal(messages[0]?.text, "A forecast for Rome");
const [tool] = await interceptors.getTools("weather");
assert.equal(await tool?.invoke({ location: "Oslo" }), "sunny in Oslo");

for (const one of [client, native, interceptors]) await one.close();
await weather.close();
