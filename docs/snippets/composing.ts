import assert from "node:assert/strict";
import type { Caller } from "@tenon/server";

const database = { orders: async (user: string) => [`${user}-1`] };

// #region first
import { createServer, defineResource, defineTool } from "@tenon/server";
import { z } from "zod";

export const listOrders = defineTool("list_orders", { input: z.object({ user: z.string() }) }, ({ user }) =>
  database.orders(user),
);
export const policy = defineResource("company://policies/return", { mimeType: "text/markdown" }, () => "# Returns");

const orders = createServer({ name: "orders", version: "1.0.0" }).use(listOrders, policy);
// #endregion

// #region mount
const house = createServer({ name: "house", version: "1.0.0" });
house.mount("shop", orders); // shop_list_orders, company://shop/policies/return
// #endregion

// #region visible
const desk = createServer({
  name: "desk",
  version: "1.0.0",
  visibleTags: (caller) => (caller?.claims.role === "admin" ? ["admin"] : []),
});
desk.tool("purge", { tags: ["admin"] }, () => "purged");
desk.tool("refund", { scopes: ["orders:refund"] }, () => "refunded");
desk.tool("beta", { visible: (caller) => caller?.subject === "alice" }, () => "tried");
desk.tool("cancel", { deprecated: "use refund instead" }, () => "cancelled");
// #endregion

// #region dynamic
orders.tool("late", {}, () => "added while serving");
orders.replace(defineTool("late", { description: "A better one" }, () => "replaced"));
orders.remove("tool", "late");

// #endregion

// #region schemas
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";

const maths = createServer({ name: "maths", version: "1.0.0", unknownArguments: "reject" });
maths.tool("zod", { input: z.object({ n: z.int() }) }, ({ n }) => n + 1);
maths.tool("arktype", { input: type({ n: "number.integer" }) }, ({ n }) => n + 1);
maths.tool("valibot", { input: toStandardJsonSchema(v.object({ n: v.number() })) }, ({ n }) => n + 1);
maths.tool("raw", { input: { type: "object", properties: { n: { type: "integer" } } } }, ({ n }) => Number(n) + 1);
// #endregion

// #region worker
maths.tool("count_primes", {
  input: z.object({ upTo: z.number() }),
  worker: new URL("./heavy.mjs", import.meta.url),
});
// #endregion

type Any = Pick<typeof house, "fetch">;
async function ask(server: Any, method: string, params: object, caller?: Caller): Promise<string> {
  const headers = {
    host: "127.0.0.1",
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  return (
    await server.fetch(new Request("http://127.0.0.1/mcp", { method: "POST", headers, body }), caller && { caller })
  ).text();
}
const call = (server: Any, name: string, args: object, caller?: Caller): Promise<string> =>
  ask(server, "tools/call", { name, arguments: args }, caller);
const admin: Caller = { subject: "root", scopes: ["orders:refund"], claims: { role: "admin" } };

assert.match(await call(house, "shop_list_orders", { user: "u1" }), /u1-1/);
assert.match(await ask(house, "resources/read", { uri: "company://shop/policies/return" }), /# Returns/);
assert.deepEqual(
  [...(await ask(desk, "tools/list", {})).matchAll(/"name":"(\w+)"/g)].map(([, name]) => name),
  ["cancel"],
);
assert.match(await ask(desk, "tools/list", {}, admin), /purge.*refund/);
assert.match(await call(desk, "purge", {}), /Unknown tool/);
assert.match(await call(desk, "refund", {}), /needs the scope orders:refund/);
assert.match(await call(house, "shop_late", {}), /Unknown tool/);
for (const name of ["zod", "arktype", "valibot", "raw"]) assert.match(await call(maths, name, { n: 1 }), /"text":"2"/);
assert.match(await call(maths, "zod", { n: 1, m: 2 }), /m: unknown argument; known: n/);
assert.match(await call(maths, "count_primes", { upTo: 10_000 }), /"1229"/);
await Promise.all([house.close(), desk.close(), maths.close()]);
