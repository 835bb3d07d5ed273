import { createClient, renderText } from "@tenon/client";

await using client = createClient({
  servers: { shop: { command: "node", args: ["--import", "tsx", "server.ts"] } },
  elicitation: ({ message }) => {
    console.log("asked:", message);
    return { action: "accept", content: { value: "yes" } };
  },
});
const result = await client.callTool("shop", "refund", { order: "ORD-001" });
console.log("answer:", renderText(result.content));
