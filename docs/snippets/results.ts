import assert from "node:assert/strict";
import { createServer, ToolError } from "@tenon/server";
import { z } from "zod";

const server = createServer({ name: "orders", version: "1.0.0" });
server.tool("get_order", { input: z.object({ id: z.string() }), annotations: { readOnlyHint: true } }, ({ id }) => {
  if (id === "ORD-9") throw new ToolError("Order ORD-9 does not exist");
  return { id, total: 42 };
});
server.tool("refund", { input: z.object({ id: z.string() }) }, ({ id }) => `${id} refunded`);
const { url } = await server.listen({ port: 0 });

// #region first
import { createClient, renderText } from "@tenon/client";

await using client = createClient({ servers: { orders: { url } } });

const found = await client.callTool("orders", "get_order", { id: "ORD-1" });
assert.deepEqual(found.structured, { id: "ORD-1", total: 42 }); // for the program
assert.equal(renderText(found.content), '{"id":"ORD-1","total":42}'); // for a model

const wrong = await client.callTool("orders", "get_order", { id: 1 });
assert.match(renderText(wrong.content), /nothing was sent[\s\S]*- id: must be a string, got 1/);
// #endregion

// #region selection
await using careful = createClient({
  servers: { orders: { url, include: ["get_*", { readOnly: true }], exclude: [{ name: "get_*", destructive: true }] } },
});
await assert.rejects(careful.callTool("orders", "refund", { id: "ORD-1" }), { code: "tool_not_allowed" });
// #endregion

// #region errors
await using strict = createClient({ servers: { orders: { url } }, toolErrors: "throw" });
await assert.rejects(strict.callTool("orders", "get_order", {}), { code: "invalid_arguments", maybeExecuted: false });
await assert.rejects(strict.callTool("orders", "get_order", { id: "ORD-9" }), { code: "tool_error" });
// #endregion

// #region limits
await assert.rejects(client.callTool("orders", "get_order", { id: "ORD-1" }, { maxResultBytes: 10 }), {
  code: "too_large",
});
// #endregion

await server.close();
