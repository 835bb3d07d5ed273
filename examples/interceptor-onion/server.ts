import { createServer } from "@tenon/server";
import { z } from "zod";

/** Who asked for what, as the desk saw it. */
export const seen: string[] = [];

const caller_id = z.string().describe("Who asks; filled in by the system");

export default createServer({ name: "orders", version: "1.0.0", logSink: () => undefined })
  .tool(
    "find_order",
    {
      description: "Looks an order up",
      input: z.object({ order_id: z.string(), caller_id }),
      annotations: { readOnlyHint: true },
    },
    ({ order_id, caller_id }) => {
      seen.push(`${caller_id} looks at ${order_id}`);
      return { order_id, status: "delivered" };
    },
  )
  .tool(
    "refund",
    { description: "Refunds an order", input: z.object({ order_id: z.string(), caller_id }) },
    ({ order_id, caller_id }) => {
      seen.push(`${caller_id} refunds ${order_id}`);
      return `${order_id} is refunded`;
    },
  );
