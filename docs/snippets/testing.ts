// #region server
import { createServer } from "@tenon/server";
import { z } from "zod";

const server = createServer({ name: "orders", version: "1.0.0" });
server.tool("refund", { input: z.object({ id: z.string() }) }, async ({ id }, ctx) => {
  await ctx.progress(1, 2, "checked");
  const answer = await ctx.elicit(`Refund ${id}?`, ["confirm", "cancel"]);
  await ctx.log.info("asked", { extra: { by: ctx.caller?.subject } });
  return answer.action === "accept" ? `${id}: ${answer.data}` : `${id}: ${answer.action}`;
});

// #endregion

// #region first
import assert from "node:assert/strict";
import { connect } from "@tenon/server/testing";

for (const era of ["modern", "legacy"] as const) {
  await using client = await connect(server, {
    era,
    elicit: { "Refund ORD-001?": "confirm", "Refund ORD-002?": { action: "decline" } },
    caller: { subject: "zhangsan" },
  });
  assert.equal((await client.callTool("refund", { id: "ORD-001" })).text, "ORD-001: confirm");
  assert.equal((await client.callTool("refund", { id: "ORD-002" })).text, "ORD-002: decline");
  assert.deepEqual(
    client.asked.map((question) => question.message),
    ["Refund ORD-001?", "Refund ORD-002?"],
  );
  assert.equal(client.logs.length, 2);
  await assert.rejects(client.callTool("refund", { id: "ORD-003" }), /the test has no answer/);
}
// #endregion

// #region function
await using picky = await connect(server, {
  elicit: ({ message, times }) => (times < 2 ? "perhaps" : message.includes("ORD-001") ? "confirm" : "cancel"),
});
assert.equal((await picky.callTool("refund", { id: "ORD-001" })).text, "ORD-001: confirm");
assert.equal(picky.asked.length, 2); // "perhaps" is no choice, so the question came again
// #endregion
