import { createServer, ToolError } from "@tenon/server";
import { z } from "zod";

const orders = new Map([
  ["ORD-001", { product: "无线耳机", status: "已签收", amount: 299 }],
  ["ORD-002", { product: "机械键盘", status: "配送中", amount: 599 }],
]);
const input = z.object({ order_id: z.string() });
function find(id: string) {
  const order = orders.get(id);
  if (!order) throw new ToolError(`没有订单 ${id}`);
  return order;
}

const server = createServer({ name: "orders", version: "1.0.0" });
server.tool(
  "check_order",
  { description: "Looks up one order.", input, annotations: { readOnlyHint: true } },
  ({ order_id }) => {
    const { product, status, amount } = find(order_id);
    return `${order_id} ${product}，${status}，${amount} 元`;
  },
);
server.tool(
  "process_refund",
  { description: "Refunds a delivered order.", input, annotations: { destructiveHint: true } },
  ({ order_id }) => {
    const order = find(order_id);
    if (order.status !== "已签收") throw new ToolError(`${order_id} ${order.status}，不能退款`);
    order.status = "已退款";
    return `${order_id} 已退款 ${order.amount} 元`;
  },
);

export default server;
await server.run(import.meta);
