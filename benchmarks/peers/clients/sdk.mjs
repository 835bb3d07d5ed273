// The client of SDK v2, one instance a server. `pinned`: the newer revision, asked for as documented. `prior`: the answer of
// an earlier server/discover is passed in, so nothing is asked.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { MODERN } from "../../lib/wire.mjs";

const discover = {
  resultType: "complete",
  supportedVersions: [MODERN],
  capabilities: { tools: {} },
  ttlMs: 0,
  cacheScope: "private",
};

export async function connect(specs, mode) {
  const prior = mode === "prior" ? { prior: { kind: "modern", discover } } : {};
  const open = async ({ url, command, args }) => {
    const client = new Client(
      { name: "bench", version: "1.0.0" },
      { versionNegotiation: { mode: mode === "prior" ? "legacy" : { pin: MODERN } } },
    );
    const transport = url
      ? new StreamableHTTPClientTransport(new URL(url))
      : new StdioClientTransport({ command, args, stderr: "ignore" });
    await client.connect(transport, prior);
    return { client, tools: (await client.listTools()).tools.length };
  };
  const all = await Promise.all(specs.map(open));
  const [{ client }] = all;
  return {
    tools: all.reduce((sum, one) => sum + one.tools, 0),
    call: async (a, b) => (await client.callTool({ name: "add", arguments: { a, b } })).content[0].text,
    close: () => Promise.all(all.map((one) => one.client.close())),
  };
}
