/** One process at the refund desk, with all it has: a server, an agent, a saved conversation. Prints what it came to as JSON. */
import { join } from "node:path";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import {
  type Answer,
  approvals,
  mcpMiddleware,
  mcpTools,
  OfflineModel,
  type Question,
  runInteractive,
} from "@tenon/agent";
import { createClient } from "@tenon/client";
import { createAgent } from "langchain";
import { openShop } from "./server.ts";

const [folder = "", threadId = "", text = "", reason = ""] = process.argv.slice(2);
const asked: string[] = [];

/** Approves everything; what the server asks is answered with the reason, or left open where there is none. */
function ask(question: Question): Answer | undefined {
  if (question.kind === "approval") {
    asked.push("approval");
    return { decisions: [{ type: "approve" }], decidedBy: "mia" };
  }
  asked.push(
    ...Object.values(question.questions).map(({ message }) => message),
    ...(question.error ? [question.error] : []),
  );
  if (!reason) return undefined;
  const keys = Object.keys(question.questions);
  return { answers: Object.fromEntries(keys.map((key) => [key, { action: "accept", content: { reason } }])) };
}

const shop = openShop(folder);
const { url } = await shop.listen({ port: 0 });
const client = createClient({ servers: { shop: { url } }, elicitation: "interrupt" });
const tools = await mcpTools(client);
const checkpointer = SqliteSaver.fromConnString(join(folder, "threads.db"));
const agent = createAgent({
  model: new OfflineModel({
    reply: ({ text, results: [result] }) =>
      result ? { text: result.text } : { calls: [{ name: "mcp_shop_refund", args: { order: text, amount: 700 } }] },
  }),
  tools,
  checkpointer,
  middleware: [mcpMiddleware({ client }), approvals(tools, { "shop/refund": true }, { client })],
});
const { status, reply } = await runInteractive(agent, text || undefined, { threadId, ask });
console.log(JSON.stringify({ now: new Date().toISOString(), status, asked, reply }));

await client.close();
await shop.close();
checkpointer.db.close();
