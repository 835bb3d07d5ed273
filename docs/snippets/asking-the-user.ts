import assert from "node:assert/strict";
import { connect } from "@tenon/server/testing";

const booked: string[] = [];
const payments = { refund: (id: string, key: string) => void booked.push(`${id} ${key.length}`) };

// #region first
import { createServer } from "@tenon/server";
import { z } from "zod";

const server = createServer({ name: "orders", version: "1.0.0" });
server.tool("refund", { input: z.object({ id: z.string(), amount: z.number() }) }, async ({ id, amount }, ctx) => {
  if (amount >= 500) {
    const answer = await ctx.elicit(`Refund ${amount} CNY for ${id}?`, ["confirm", "cancel"]);
    if (answer.action !== "accept" || answer.data === "cancel") return "Refund not made";
  }
  await ctx.step("refund", (key) => payments.refund(id, key));
  return `${amount} CNY refunded`;
});

// #endregion

// #region shapes
import { multi } from "@tenon/server";

server.tool("shapes", {}, async (_, ctx) => {
  const one = await ctx.elicit("Which size?", ["S", "M", "L"]);
  const titled = await ctx.elicit("How soon?", { today: "Today", later: "In a week" });
  const many = await ctx.elicit("Which colours?", multi(["red", "green"]));
  const scalar = await ctx.elicit("How many?", z.int().min(1).max(9));
  const form = await ctx.elicit("Where to?", z.object({ city: z.string(), express: z.boolean().default(false) }));
  return [one, titled, many, scalar, form].map((answer) => (answer.action === "accept" ? answer.data : answer.action));
});
// #endregion

// #region together
server.tool("together", {}, async (_, ctx) => {
  const [name, size] = await Promise.all([ctx.elicit("Name?", z.string()), ctx.elicit("Size?", ["S", "M"])]);
  return { name, size };
});
// #endregion

for (const era of ["modern", "legacy"] as const) {
  booked.length = 0;
  await using client = await connect(server, {
    era,
    elicit: {
      "Refund 599 CNY for ORD-002?": "confirm",
      "Which size?": "M",
      "How soon?": "later",
      "Which colours?": ["red"],
      "How many?": 3,
      "Where to?": { city: "北京", express: true },
      "Name?": "Ann",
      "Size?": "S",
    },
  });
  assert.equal((await client.callTool("refund", { id: "ORD-001", amount: 299 })).text, "299 CNY refunded");
  assert.equal((await client.callTool("refund", { id: "ORD-002", amount: 599 })).text, "599 CNY refunded");
  assert.equal(booked.length, 2);
  assert.deepEqual(JSON.parse((await client.callTool("shapes")).text), [
    "M",
    "later",
    ["red"],
    3,
    { city: "北京", express: true },
  ]);
  assert.deepEqual((await client.callTool("together")).structured, {
    name: { action: "accept", data: "Ann" },
    size: { action: "accept", data: "S" },
  });
}
