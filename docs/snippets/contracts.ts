import assert from "node:assert/strict";
import { newContractKey, writeContractKeys } from "@tenon/core/contract";

process.env.TENON_CONTRACT_KEYS = writeContractKeys([newContractKey({ kid: "2026-11", alg: "EdDSA" })]);
const orders = { list: async (department: string) => [`${department} 1`] };

// #region first
import { createServer } from "@tenon/server";
import { z } from "zod";

const server = createServer({
  name: "orders",
  version: "1.0.0",
  contract: {
    schema: z.object({
      user_id: z.string(),
      session_id: z.string(),
      department: z.enum(["sales", "support"]),
    }),
  }, // signed with TENON_CONTRACT_KEYS
});
server.tool("list_orders", { description: "Lists the open orders." }, (_, ctx) => orders.list(ctx.context.department));
// #endregion

// #region options
const narrow = createServer({
  name: "stock",
  version: "1.0.0",
  contract: {
    schema: {
      type: "object",
      properties: { tenant: { type: "string" }, thread: { type: "string" } },
      required: ["tenant"],
    },
    capabilities: ["tools.list", "tools.execute"], // and nothing else
    session: "thread",
    contextTtlMs: 3_600_000,
    authentication: { type: "jwt", issuer: "https://login.example", audience: "https://stock.example/mcp" },
  },
});
// #endregion
narrow.tool("count", {}, () => 3);
narrow.resource("stock://list", {}, () => "3");

import { connect } from "@tenon/server/testing";

await using client = await connect(server);
const context = { user_id: "alice", session_id: "s-1", department: "sales" };
const { structured } = await client.callTool("list_orders", {}, { meta: { "dev.tenon/context": context } });
assert.deepEqual(structured, ["sales 1"]);

// #region refused
const refusal = await client
  .callTool("list_orders", {}, { meta: { "dev.tenon/context": { user_id: "alice" } } })
  .catch((error: { data: unknown }) => error.data);
// { code: -32602, data: { reason: "missing_context_field", field: "session_id" } }
// #endregion
assert.deepEqual(refusal, { code: -32602, data: { reason: "missing_context_field", field: "session_id" } });

// #region last
const last = await client.request("contexts/get", { session_id: "s-1" });
// { context: { user_id: "alice", session_id: "s-1", department: "sales" }, expires_at: "…" }
// #endregion
assert.deepEqual(last.context, context);
const { extensions } = client.server.capabilities as { extensions: Record<string, { signature: { kid: string } }> };
assert.equal(extensions["dev.tenon/context"]?.signature.kid, "2026-11");
await using second = await connect(narrow);
await assert.rejects(second.listResources(), (error) => {
  const { data } = error as { data: { data: unknown } };
  assert.deepEqual(data.data, { reason: "undeclared_capability", capability: "resources.list" });
  return true;
});
