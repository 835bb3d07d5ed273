import { createServer } from "@tenon/server";
import { z } from "zod";

const THRESHOLD = 1000;

const server = createServer({ name: "expenses", version: "1.0.0" });
server.tool(
  "submit_expense",
  {
    description: "Submits an expense; a large one needs an approval.",
    input: z.object({ amount: z.number().positive(), purpose: z.string() }),
  },
  async ({ amount, purpose }, ctx) => {
    if (amount > THRESHOLD) {
      const question = `Approve ${amount} CNY for ${purpose}?`;
      const answer = await ctx.elicit(question, z.object({ approve: z.boolean() }), { key: "confirm_amount" });
      if (answer.action !== "accept" || !answer.data.approve) return `Not submitted: ${amount} CNY for ${purpose}`;
    }
    // the effect happens once, however often the handler is run again
    const id = await ctx.step("submit", () => `EXP-${amount}`);
    return `${id} submitted: ${amount} CNY for ${purpose}`;
  },
);

export default server;
await server.run(import.meta);
