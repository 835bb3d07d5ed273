import assert from "node:assert/strict";
import { MemorySaver, ReducedValue, StateSchema } from "@langchain/langgraph";
import { OfflineModel, runInteractive } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { createServer } from "@tenon/server";
import { z } from "zod";

const shop = createServer({ name: "order", version: "1.0.0", logSink: () => {} });
const paid: string[] = [];
const input = z.object({ order: z.string(), amount: z.number() });
shop.tool("process_refund", { input, annotations: { destructiveHint: true } }, ({ order, amount }) => {
  paid.push(`${order} ${amount}`);
  return `${amount} refunded for ${order}`;
});
shop.tool("process_exchange", { input: z.object({ order: z.string() }) }, ({ order }) => `${order} exchanged`);
shop.tool("send_email", { annotations: { openWorldHint: true } }, () => "sent");
const listening = await shop.listen({ port: 0 });
const seen: string[] = [];

// #region known
import { type AgentInterceptor, approvalOf } from "@tenon/agent";

const note: AgentInterceptor = async (request, next) => {
  const approval = approvalOf(request.runtime); // undefined when nobody was asked
  if (approval) seen.push(`${request.name}: ${approval.decision} by ${approval.decidedBy} at ${approval.decidedAt}`);
  return next(request);
};
// #endregion

const client = createClient({ servers: { order: { url: listening.url } }, interceptors: [note] });
const model = new OfflineModel({
  reply: ({ results: [result] }) =>
    result
      ? { text: result.text }
      : { calls: [{ name: "mcp_order_process_refund", args: { order: "ORD-1", amount: 700 } }] },
});
const checkpointer = new MemorySaver();

// #region first
import { approvals, mcpMiddleware, mcpTools } from "@tenon/agent";
import { createAgent } from "langchain";

const tools = await mcpTools(client);
const agent = createAgent({
  model,
  tools,
  checkpointer,
  middleware: [
    mcpMiddleware(),
    approvals(tools, {
      "order/process_refund": {
        when: ({ amount }) => Number(amount) >= 500,
        description: ({ order, amount }) => `Refund ${amount} for ${order}`,
        decisions: ["approve", "edit", "reject"],
      },
      "order/send_email": false,
    }),
  ],
});
// #endregion

// #region answer
const { reply } = await runInteractive(agent, "Refund ORD-1", {
  threadId: "customer-7",
  ask: (question) =>
    question.kind === "approval"
      ? {
          decisions: [{ type: "edit", editedAction: { args: { order: "ORD-1", amount: 650 } } }],
          decidedBy: "mia@shop.example",
        }
      : undefined,
});
// #endregion
assert.equal(reply, "650 refunded for ORD-1");
assert.deepEqual(paid, ["ORD-1 650"]);
assert.match(seen[0] ?? "", /^process_refund: edit by mia@shop.example at 20/);

// #region audit
import { approvalsOf } from "@tenon/agent";

const stateSchema = new StateSchema({
  audit: new ReducedValue(
    z.array(z.string()).default(() => []),
    { reducer: (log: string[], more: string[]) => [...log, ...more] },
  ),
});
const audited = createAgent({
  model,
  tools,
  checkpointer,
  stateSchema,
  middleware: [
    mcpMiddleware(),
    approvals(
      tools,
      { "order/process_refund": { renameTo: ["order/process_exchange"] } },
      {
        ttlMs: 4 * 3_600_000, // a later answer is asked for again
        audit: (records) => ({ audit: records.map((one) => `${one.decidedBy}: ${one.decision} ${one.tool}`) }),
      },
    ),
  ],
});
// #endregion
const { values } = await runInteractive(audited, "Refund ORD-1", {
  threadId: "customer-8",
  ask: () => ({
    decisions: [{ type: "edit", editedAction: { name: "order/process_exchange", args: { order: "ORD-1" } } }],
    decidedBy: "mia",
  }),
});
assert.deepEqual(values.audit, ["mia: edit process_refund"]);
assert.equal(approvalsOf(values).length, 1);
assert.deepEqual(paid, ["ORD-1 650"]);

await client.close();
await listening.close();
await shop.close();
