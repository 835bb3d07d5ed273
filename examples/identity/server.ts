import { createServer, type ToolContext, ToolError } from "@tenon/server";
import { z } from "zod";

/** Who called what, as this server saw it. */
export interface Seen {
  readonly tool: string;
  readonly order: string;
  readonly caller: string;
  readonly authorization: string | undefined;
}
export const seen: Seen[] = [];

const orders: Record<string, { product: string; status: string; amount: number }> = {
  "ORD-001": { product: "无线耳机", status: "已签收", amount: 299 },
  "ORD-002": { product: "机械键盘", status: "待发货", amount: 599 },
  "ORD-003": { product: "显示器", status: "已完成", amount: 1299 },
};
// the caller's id is for the log and for business rules; who may do what is decided by the token
const caller_id = z.string().default("");

function note(tool: string, order: string, caller: string, ctx: ToolContext): void {
  seen.push({ tool, order, caller, authorization: ctx.headers?.get("authorization") ?? undefined });
}

const server = createServer({ name: "orders", version: "1.0.0" });
server.tool(
  "query_order",
  {
    description: "Looks up one order.",
    input: z.object({ order_id: z.string(), caller_id }),
    annotations: { readOnlyHint: true },
  },
  async ({ order_id, caller_id }, ctx) => {
    const order = orders[order_id];
    if (!order) throw new ToolError(`没有订单 ${order_id}`);
    await new Promise((resolve) => setTimeout(resolve, order.amount % 20)); // answers overtake each other
    note("query_order", order_id, caller_id, ctx);
    return `${order_id} ${order.product}，${order.status}，${order.amount} 元`;
  },
);
server.tool(
  "submit_refund",
  { description: "Asks for a refund.", input: z.object({ order_id: z.string(), reason: z.string(), caller_id }) },
  ({ order_id, reason, caller_id }, ctx) => {
    note("submit_refund", order_id, caller_id, ctx);
    return `${order_id} 的退款申请已提交（${reason}），申请人 ${caller_id}`;
  },
);

export default server;
await server.run(import.meta);
