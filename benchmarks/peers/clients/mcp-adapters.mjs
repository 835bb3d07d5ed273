// @langchain/mcp-adapters: MultiServerMCPClient and `invoke` of the tool it makes; the older era only.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";

export async function connect(specs) {
  const servers = specs.map((spec, i) => [
    `s${i}`,
    { transport: spec.url ? "http" : "stdio", stderr: "ignore", ...spec },
  ]);
  const client = new MultiServerMCPClient({
    mcpServers: Object.fromEntries(servers),
    prefixToolNameWithServerName: specs.length > 1,
  });
  const tools = await client.getTools();
  const add = tools.find(({ name }) => name.endsWith("add"));
  return { tools: tools.length, call: (a, b) => add.invoke({ a, b }), close: () => client.close() };
}
