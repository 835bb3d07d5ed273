// Tenon's tools for LangChain: `invoke` of what mcpTools makes, or, as `multi-server`, of what MultiServerMCPClient gives.
// biome-ignore lint/correctness/noUndeclaredDependencies: the build of this checkout, found in the folder above
import { MultiServerMCPClient, mcpTools } from "@tenon/agent";
// biome-ignore lint/correctness/noUndeclaredDependencies: as above
import { createClient } from "@tenon/client";

export async function connect(specs, mode) {
  const servers = Object.fromEntries(specs.map((spec, i) => [`s${i}`, { ...spec, connectTimeoutMs: 30_000 }]));
  const client =
    mode === "multi-server" ? new MultiServerMCPClient({ mcpServers: servers }) : createClient({ servers });
  const tools = mode === "multi-server" ? await client.getTools() : await mcpTools(client);
  const add = tools.find(({ name }) => name.endsWith("add"));
  return { tools: tools.length, call: (a, b) => add.invoke({ a, b }), close: () => client.close() };
}
