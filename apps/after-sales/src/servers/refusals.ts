import { ToolError } from "@tenon/server";
import { type Texts, yuan } from "../texts/index.ts";
import type { Refusal } from "./order-book.ts";

/** Why an order was not refunded, for people. */
export function explain(t: Texts, refused: Refusal): string {
  switch (refused.reason) {
    case "unknown":
      return t.order.unknown(refused.orderId);
    case "not_delivered":
      return t.order.notDelivered(refused.order.id, t.status[refused.order.status] ?? refused.order.status);
    case "already":
      return t.order.already(refused.order.id, yuan(refused.refund.amount));
    case "too_large":
      return t.order.tooLarge(refused.order.id, yuan(refused.order.amount));
  }
}

/** A refusal is permanent: the model reads why, programs read the reason. */
export const refusal = (t: Texts, refused: Refusal): ToolError =>
  new ToolError(explain(t, refused), { code: refused.reason, data: { status: "refused", reason: refused.reason } });
