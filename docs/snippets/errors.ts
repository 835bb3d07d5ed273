import assert from "node:assert/strict";
import { connect } from "@tenon/server/testing";

const database = {
  async find(id: string): Promise<{ id: string } | undefined> {
    if (id === "down") throw new Error("connect ECONNREFUSED 10.0.3.7:5432");
    return id === "ORD-001" ? { id } : undefined;
  },
};
const lines: string[] = [];

// #region first
import { createServer, ToolError } from "@tenon/server";
import { z } from "zod";

const server = createServer({ name: "orders", version: "1.0.0", logSink: ({ message }) => lines.push(message) });
server.tool("get_order", { input: z.object({ id: z.string() }) }, async ({ id }) => {
  const order = await database.find(id); // what this throws, the model never reads
  if (!order) throw new ToolError(`Order ${id} does not exist`, { code: "no_order", data: { id } });
  return order;
});
// #endregion

await using client = await connect(server);
const missing = await client.callTool("get_order", { id: "ORD-9" });
assert.deepEqual([missing.text, missing.structured], ["Order ORD-9 does not exist", { id: "ORD-9" }]);
const down = await client.callTool("get_order", { id: "down" });
assert.match(down.text, /^Tool get_order failed \(reference [2-9A-Z]{6}\)$/);
assert.deepEqual(lines, ["Tool get_order failed"]);
await assert.rejects(client.callTool("get_ordr"), /Unknown tool "get_ordr"; did you mean "get_order"\?/);
assert.throws(() => server.tool("get_order", {}, () => 1), { code: "duplicate" });
