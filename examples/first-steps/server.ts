import { createServer } from "@tenon/server";
import { z } from "zod";

const server = createServer({ name: "shop", version: "1.0.0" });
const input = z.object({ order: z.string() });
server.tool("refund", { description: "Refunds an order.", input }, async ({ order }, ctx) => {
  const answer = await ctx.elicit(`Refund ${order}?`, ["yes", "no"]);
  return answer.action === "accept" && answer.data === "yes" ? `${order} refunded` : "Nothing changed";
});
await server.run(import.meta);
