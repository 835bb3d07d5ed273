// #region first
import { createServer, ToolError } from "@tenon/server";
import { z } from "zod";

const server = createServer({ name: "orders", version: "1.0.0" });
const Order = z.object({ id: z.string(), amount: z.number(), status: z.enum(["delivered", "open"]) });
const orders = new Map([["ORD-001", { id: "ORD-001", amount: 299, status: "delivered" as const }]]);

server.tool(
  "get_order",
  {
    description: "Looks up one order.",
    input: z.object({ id: z.string().describe("order number, e.g. ORD-001") }),
    output: Order,
    annotations: { readOnlyHint: true },
  },
  ({ id }) => {
    const order = orders.get(id);
    if (!order) throw new ToolError(`Order ${id} does not exist`);
    return order;
  },
);

// #endregion

// #region content
import { content, image, text } from "@tenon/server";

const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
server.tool("label", {}, () => content(["Print this:", image(dot, "image/png")]));
server.tool("total", {}, () => text("299 CNY in one order", { count: 1, total: 299 }));
// #endregion

// #region progress
server.tool("reindex", {}, async (_, ctx) => {
  await ctx.log.info("started", { extra: { orders: 200 } });
  for (let done = 50; done <= 200; done += 50) {
    if (ctx.signal.aborted) return "stopped";
    await ctx.progress(done, 200, `${done} orders`);
  }
  return "done";
});

// #endregion

// #region strict
server.tool("find", { input: z.strictObject({ text: z.string() }) }, ({ text }) => text);
server.tool("sum", { unknownArguments: "reject", timeoutMs: 30_000 }, () => 3);

// #endregion

import assert from "node:assert/strict";
import { connect } from "@tenon/server/testing";

await using client = await connect(server);
assert.deepEqual((await client.callTool("get_order", { id: "ORD-001" })).structured, orders.get("ORD-001"));
const missing = await client.callTool("get_order", { id: "ORD-9" });
assert.deepEqual([missing.isError, missing.text], [true, "Order ORD-9 does not exist"]);
assert.equal(
  (await client.callTool("get_order", { id: 7 })).text,
  "Invalid arguments for get_order: id: Invalid input: expected string, received number",
);
assert.equal((await client.callTool("label")).content.length, 2);
assert.deepEqual((await client.callTool("total")).structured, { count: 1, total: 299 });
await client.callTool("reindex");
assert.deepEqual(client.progress.at(-1), { progress: 200, total: 200, message: "200 orders" });
assert.deepEqual(client.logs, [{ level: "info", data: { msg: "started", extra: { orders: 200 } } }]);
assert.equal(
  (await client.callTool("find", { text: "a", txt: "b" })).text,
  "Invalid arguments for find: txt: unknown argument; known: text",
);
assert.match((await client.callTool("sum", { a: 1 })).text, /a: unknown argument/);
assert.equal((await client.callTool("get_order", { id: "ORD-001", idd: "x" })).isError, false);
