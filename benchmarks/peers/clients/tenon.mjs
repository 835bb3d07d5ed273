// Tenon: one client, however many servers.
// biome-ignore lint/correctness/noUndeclaredDependencies: the build of this checkout, found in the folder above
import { createClient } from "@tenon/client";

export async function connect(specs) {
  const client = createClient({
    servers: Object.fromEntries(
      specs.map((spec, i) => [`s${i}`, { ...spec, required: true, connectTimeoutMs: 30_000 }]),
    ),
  });
  const tools = await client.listTools();
  return {
    tools: tools.length,
    call: async (a, b) => (await client.callTool("s0", "add", { a, b })).content[0].text,
    close: () => client.close(),
  };
}
