import type Database from "better-sqlite3";

/** Money is in fen: 29900 is 299.00 CNY. */
export interface Order {
  id: string;
  status: "delivered" | "in_delivery";
  amount: number;
}

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

/** Orders and their refunds. Asynchronous, so that another database can stand behind it. */
export interface OrderBook {
  find(id: string): Promise<{ order: Order; refund?: Refund } | undefined>;
  /** What `refund` would refuse right now, without doing anything. */
  check(
    id: string,
    request: Pick<RefundRequest, "idempotencyKey" | "limit">,
  ): Promise<RefundOutcome | { ready: Order }>;
  /** Refunds in one transaction; at most one refund an order, whoever asks at the same time. */
  refund(id: string, request: RefundRequest): Promise<RefundOutcome>;
}

interface RefundRow {
  order_id: string;
  amount: number;
  created_at: string;
  idempotency_key: string;
}

export function createOrderBook(database: Database.Database): OrderBook {
  const selectOrder = database.prepare<[string], Order>("select id, status, amount from orders where id = ?");
  const selectRefund = database.prepare<[string], RefundRow>(
    "select order_id, amount, created_at, idempotency_key from refunds where order_id = ?",
  );
  const insertRefund = database.prepare<[string, number, string, string, string, string]>(
    "insert into refunds (order_id, amount, reason, caller_id, idempotency_key, created_at) values (?, ?, ?, ?, ?, ?)",
  );

  function refundOf(id: string): Refund | undefined {
    const row = selectRefund.get(id);
    return (
      row && { orderId: row.order_id, amount: row.amount, at: row.created_at, idempotencyKey: row.idempotency_key }
    );
  }

  function check(
    id: string,
    request: Pick<RefundRequest, "idempotencyKey" | "limit">,
  ): RefundOutcome | { ready: Order } {
    const order = selectOrder.get(id);
    if (!order) return { refused: { reason: "unknown", orderId: id } };
    const refund = refundOf(id);
    if (refund?.idempotencyKey === request.idempotencyKey) return { refund, order };
    if (refund) return { refused: { reason: "already", order, refund } };
    if (order.status !== "delivered") return { refused: { reason: "not_delivered", order } };
    if (request.limit !== undefined && order.amount > request.limit) return { refused: { reason: "too_large", order } };
    return { ready: order };
  }

  const refund = database.transaction((id: string, request: RefundRequest): RefundOutcome => {
    const checked = check(id, request);
    if (!("ready" in checked)) return checked;
    const { ready: order } = checked;
    const at = new Date().toISOString();
    insertRefund.run(id, order.amount, request.reason, request.callerId, request.idempotencyKey, at);
    return { order, refund: { orderId: id, amount: order.amount, at, idempotencyKey: request.idempotencyKey } };
  });

  return {
    async find(id) {
      const order = selectOrder.get(id);
      const found = order && refundOf(id);
      return order && { order, ...(found && { refund: found }) };
    },
    check: async (id, request) => check(id, request),
    // immediate: two processes that refund the same order take turns
    refund: async (id, request) => refund.immediate(id, request),
  };
}
