import { MemorySaver } from "@langchain/langgraph";
import { approvals, mcpMiddleware, mcpTools, OfflineModel, runInteractive } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { audit } from "@tenon/client/interceptors";
import { openMemory } from "@tenon/store";
import { openTelemetry } from "@tenon/telemetry";
import { createAgent } from "langchain";

// the program that a call begins in: `hop-agent.ts agent <folder> <address of the shop>`
const [, , , , next = ""] = process.argv;
const stores = openMemory();
const telemetry = await openTelemetry({ serviceName: "agent" });
const client = createClient({
  servers: { shop: { url: next } },
  elicitation: "interrupt",
  interceptors: [audit({ sink: stores.audit.sink() })],
});
const tools = await mcpTools(client as never);
const model = new OfflineModel({
  reply: ({ step }) =>
    step === 0 ? { calls: [{ name: "mcp_shop_have", args: { of: "teapots" } }] } : { text: "done" },
});
const agent = createAgent({
  name: "desk",
  model,
  tools,
  middleware: [mcpMiddleware(), approvals(tools)],
  checkpointer: new MemorySaver(),
});
const options = { threadId: "t1", ask: () => undefined };
await runInteractive(agent, "have you teapots?", options); // an approval stays open
const { reply } = await runInteractive(agent, undefined, {
  threadId: "t1",
  ask: (question) =>
    question.kind === "approval"
      ? { decisions: [{ type: "approve" }] }
      : {
          answers: Object.fromEntries(
            Object.keys(question.questions).map((key) => [key, { action: "accept", content: { value: true } }]),
          ),
        },
});
await client.close();
for (const record of await stores.audit.read()) process.stdout.write(`audit ${JSON.stringify(record)}\n`);
process.stdout.write(`trail ${JSON.stringify(await stores.audit.verify())}\n`);
await telemetry.close();
process.stdout.write(`ready ${reply}\n`);
