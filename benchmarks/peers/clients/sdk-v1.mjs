// The client of SDK v1: the older era only.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

export async function connect([{ url }]) {
  const client = new Client({ name: "bench", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return {
    tools: (await client.listTools()).tools.length,
    call: async (a, b) => (await client.callTool({ name: "add", arguments: { a, b } })).content[0].text,
    close: () => client.close(),
  };
}
