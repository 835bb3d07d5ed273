import assert from "node:assert/strict";
import { createClient } from "@tenon/client";
import { TenonError } from "@tenon/core";

const client = createClient({ servers: { order: { url: "http://127.0.0.1:9/mcp" } } });
const seen: string[] = [];

// #region errors
try {
  await client.callTool("order", "cancel_order", { order_id: "ORD-001" });
} catch (error) {
  if (!(error instanceof TenonError)) throw error;
  if (error.maybeExecuted) seen.push("look before you repeat it");
  else if (error.retryable) seen.push(`again later: ${error.code}`);
  else seen.push(`change something first: ${error.message}`);
}
for (const { server, health, error, problems } of client.servers()) {
  console.error(server, health, error?.message ?? "", problems);
}
// #endregion
assert.deepEqual(seen, ["again later: unreachable"]);
await client.close();
