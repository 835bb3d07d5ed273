import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { createServer, openStateKeys } from "@tenon/server";
import { z } from "zod";

/** The shop's server. What it needs to know its own questions again lies in the folder. */
export function openShop(folder: string) {
  const server = createServer({
    name: "shop",
    version: "1.0.0",
    stateKeys: openStateKeys(join(folder, "keys")),
    questionTtlMs: 3 * 24 * 3_600_000,
  });
  const input = z.object({ order: z.string(), amount: z.number() });
  server.tool(
    "refund",
    { description: "Refunds an order.", input, idempotent: true },
    async ({ order, amount }, ctx) => {
      const answer = await ctx.elicit(`Refund ${amount} for ${order}: why?`, z.object({ reason: z.string() }));
      if (answer.action !== "accept") return `${order} was not refunded`;
      await ctx.step("refund", () => appendFileSync(join(folder, "refunds"), `${order} ${amount}\n`));
      return `${order} refunded: ${answer.data.reason}`;
    },
  );
  return server;
}
