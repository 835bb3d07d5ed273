import type { ToolContext } from "@tenon/server";
import { z } from "zod";
import type { Texts } from "../texts/index.ts";
import type { OrderBook } from "./order-book.ts";

/** What the tools of the order server work with. */
export type OrderContext = ToolContext<{ book: OrderBook }>;

/** `ord-1 ` as a person types it → `ORD-001`; anything else stays as it is. */
export function orderId(text: string): string {
  const [, digits] = /^\s*ord[-_ ]?(\d{1,9})\s*$/i.exec(text) ?? [];
  return digits === undefined ? text.trim() : `ORD-${digits.padStart(3, "0")}`;
}

/** Who a refund is made for, as the client wrote it, else as the token says it. */
export const callerOf = (callerId: string, { caller }: OrderContext): string => callerId || (caller?.subject ?? "");

/** Arguments that several tools take. */
export const sharedArguments = (own: Texts) => ({
  order_id: z.string().min(1).max(64).describe(own.order.orderId),
  caller_id: z.string().max(200).default("").describe(own.order.callerId),
  reason: z.string().min(1).max(500).describe(own.order.reason),
});
