import { type Selectable, sql } from "kysely";
import type { DeskDatabase, DeskTables } from "../database/tables.ts";

/** Money is in fen: 29900 is 299.00 CNY. */
export type Order = Selectable<DeskTables["orders"]>;

interface Refund {
  orderId: string;
  amount: number;
  at: string;
  idempotencyKey: string;
}

/** Why an order was not refunded. */
export type Refusal =
  | { reason: "unknown"; orderId: string }
  | { reason: "not_delivered"; order: Order }
  | { reason: "already"; order: Order; refund: Refund }
  | { reason: "too_large"; order: Order };

type RefundOutcome = { refund: Refund; order: Order } | { refused: Refusal };

interface RefundRequest {
  reason: string;
  callerId: string;
  /** The same key gets the first outcome again instead of "already refunded". */
  idempotencyKey: string;
  /** Fen; orders above it are refused. */
  limit?: number;
}

type Condition = Pick<RefundRequest, "idempotencyKey" | "limit">;

/** Orders and their refunds, whichever database stands behind it. */
export interface OrderBook {
  find(id: string): Promise<{ order: Order; refund?: Refund } | undefined>;
  /** What `refund` would refuse right now, without doing anything. */
  check(id: string, request: Condition): Promise<RefundOutcome | { ready: Order }>;
  /** Refunds in one transaction; at most one refund an order, whoever asks at the same time. */
  refund(id: string, request: RefundRequest): Promise<RefundOutcome>;
}

/** An order that changes at every look is not refunded. */
const LOOKS = 3;

export function createOrderBook({ db }: Pick<DeskDatabase, "db">): OrderBook {
  async function find(id: string): ReturnType<OrderBook["find"]> {
    const row = await db
      .selectFrom("orders")
      .leftJoin("refunds", "refunds.order_id", "orders.id")
      .select(["id", "status", "orders.amount", "refunds.amount as refunded", "created_at", "idempotency_key"])
      .where("id", "=", id)
      .executeTakeFirst();
    if (!row) return undefined;
    const { refunded, created_at, idempotency_key, ...order } = row;
    if (refunded === null || created_at === null || idempotency_key === null) return { order };
    return { order, refund: { orderId: id, amount: refunded, at: created_at, idempotencyKey: idempotency_key } };
  }

  async function check(id: string, { idempotencyKey, limit }: Condition): ReturnType<OrderBook["check"]> {
    const found = await find(id);
    if (!found) return { refused: { reason: "unknown", orderId: id } };
    const { order, refund } = found;
    if (refund?.idempotencyKey === idempotencyKey) return { refund, order };
    if (refund) return { refused: { reason: "already", order, refund } };
    if (order.status !== "delivered") return { refused: { reason: "not_delivered", order } };
    if (limit !== undefined && order.amount > limit) return { refused: { reason: "too_large", order } };
    return { ready: order };
  }

  /** One statement, so one transaction: what may be refunded is read and written in it, and of two at once one waits. */
  async function insert(id: string, { reason, callerId, idempotencyKey, limit }: RefundRequest): Promise<void> {
    await db
      .insertInto("refunds")
      .columns(["order_id", "amount", "reason", "caller_id", "idempotency_key", "created_at"])
      .expression((query) => {
        const delivered = query
          .selectFrom("orders")
          .select([
            "id",
            "amount",
            sql<string>`${reason}`.as("reason"),
            sql<string>`${callerId}`.as("caller_id"),
            sql<string>`${idempotencyKey}`.as("idempotency_key"),
            sql<string>`${new Date().toISOString()}`.as("created_at"),
          ])
          .where("id", "=", id)
          .where("status", "=", "delivered");
        return limit === undefined ? delivered : delivered.where("amount", "<=", limit);
      })
      .onConflict((conflict) => conflict.column("order_id").doNothing())
      .execute();
  }

  return {
    find,
    check,
    async refund(id, request) {
      for (let look = 0; look < LOOKS; look++) {
        await insert(id, request);
        const checked = await check(id, request); // whose refund it is now, or why there is none
        if (!("ready" in checked)) return checked;
      }
      throw new Error(`the order ${id} changed at every look`);
    },
  };
}
