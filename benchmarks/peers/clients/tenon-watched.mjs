// Tenon with what a client of fifty servers has: replicas behind a breaker, a signed contract, metrics.
// biome-ignore lint/correctness/noUndeclaredDependencies: the build of this checkout, found in the folder above
import { createClient } from "@tenon/client";
// biome-ignore lint/correctness/noUndeclaredDependencies: the same
import { openTelemetry } from "@tenon/telemetry";
import { clientContract } from "../../lib/contract.mjs";

export async function connect(specs) {
  await openTelemetry({ serviceName: "bench-client" });
  const replicas = specs.map(({ url }) => url);
  const client = createClient({
    servers: { s0: { replicas, contract: clientContract, required: true, connectTimeoutMs: 30_000 } },
  });
  const tools = await client.listTools();
  return {
    tools: tools.length,
    call: async (a, b) =>
      (await client.callTool("s0", "add", { a, b }, { runtime: { threadId: "thread-1" } })).content[0].text,
    close: () => client.close(),
  };
}
