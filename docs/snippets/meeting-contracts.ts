import assert from "node:assert/strict";
import { newContractKey, publicContractKey, writeContractKeys } from "@tenon/core/contract";
import { createServer } from "@tenon/server";
import { z } from "zod";

const key = newContractKey({ kid: "2026-11", alg: "EdDSA" });
process.env.TENON_CONTRACT_KEYS = writeContractKeys([publicContractKey(key)]);
const orders = createServer({
  name: "orders",
  version: "1.0.0",
  logSink: () => undefined,
  contract: { schema: z.object({ user_id: z.string(), session_id: z.string() }), keys: [key] },
});
const got: unknown[] = [];
orders.tool("cancel", {}, (_, ctx) => {
  got.push(ctx.context);
  return "cancelled";
});
const { url } = await orders.listen({ port: 0 });
const log: string[] = [];

// #region first
import { createClient } from "@tenon/client";
import { readContractKeys } from "@tenon/core/contract";

const client = createClient({
  servers: {
    order: {
      url,
      contract: {
        keys: readContractKeys(process.env.TENON_CONTRACT_KEYS ?? ""), // nobody else's contract is believed
        context: ({ threadId }) => ({ user_id: "ann", session_id: threadId }),
      },
    },
  },
  events: {
    onContract: ({ server, accepted, steps }) => log.push(`${server}: ${accepted ?? steps.at(-1)?.reason}`),
  },
});
await client.callTool("order", "cancel", {}, { runtime: { threadId: "t1" } });
// #endregion
assert.deepEqual(got, [{ user_id: "ann", session_id: "t1" }]);
assert.deepEqual(log, ["order: 0.4.2"]);

// #region missing
import { ContractError } from "@tenon/core";

try {
  await client.callTool("order", "cancel"); // no thread, so no session
} catch (error) {
  if (!(error instanceof ContractError)) throw error;
  log.push(`${error.code}: ${JSON.stringify(error.data)}`); // nothing was sent
}
const [order] = client.servers(); // order.contract: version, serverId, capabilities, signed, nextRotation
const { context } = await client.getContext("order", "t1"); // what the server accepted last in that session
// #endregion
assert.equal(log[1], 'missing_context_field: {"reason":"missing_context_field","field":"session_id"}');
assert.equal(got.length, 1);
assert.equal(order?.contract?.signed, true);
assert.deepEqual(context, { user_id: "ann", session_id: "t1" });
await client.close();
await orders.close();
