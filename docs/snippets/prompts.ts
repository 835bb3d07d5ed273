// #region first
import { createServer } from "@tenon/server";
import { z } from "zod";

const server = createServer({ name: "desk", version: "1.0.0" });
server.prompt(
  "refund_reply",
  {
    description: "Writes to a customer about a refund.",
    input: z.object({ orderId: z.string().describe("order number"), tone: z.string().optional() }),
  },
  ({ orderId, tone = "friendly" }) => `Write a ${tone} message: order ${orderId} is refunded.`,
);
// #endregion

// #region messages
server.prompt("example", {}, () => [
  "How long do I have to return something?",
  { role: "assistant", content: "Thirty days." },
  "And a book?",
]);

// #endregion

import assert from "node:assert/strict";
import { connect } from "@tenon/server/testing";

await using client = await connect(server);
const [message] = await client.getPrompt("refund_reply", { orderId: "ORD-001" });
assert.deepEqual(message, {
  role: "user",
  content: { type: "text", text: "Write a friendly message: order ORD-001 is refunded." },
});
assert.deepEqual(
  (await client.getPrompt("example")).map(({ role }) => role),
  ["user", "assistant", "user"],
);
await assert.rejects(client.getPrompt("refund_reply"), /Invalid arguments for prompt refund_reply: orderId/);
