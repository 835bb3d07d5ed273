import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { createServer, type TenonServer, type ToolContext, ToolError, text } from "@tenon/server";
import { z } from "zod";
import { type Texts, textsFor, yuan } from "../texts/index.ts";
import { ownCallerOnly, SCOPE_HIERARCHY, TOOL_SCOPES, textsOf } from "./access.ts";
import type { ServerOptions } from "./options.ts";
import { createOrderBook, type Order, type OrderBook, type Refusal } from "./order-book.ts";
import { stateKeysOf } from "./trust.ts";

/** From this amount on the user confirms a refund again; a batch takes orders up to it. Fen. */
const CONFIRM_FROM = 50_000;
const BATCH_LIMIT = 50_000;
const BATCH_SIZE = 100;

type Context = ToolContext<{ book: OrderBook }>;

/** `ord-1 ` as a person types it → `ORD-001`; anything else stays as it is. */
function orderId(text: string): string {
  const [, digits] = /^\s*ord[-_ ]?(\d{1,9})\s*$/i.exec(text) ?? [];
  return digits === undefined ? text.trim() : `ORD-${digits.padStart(3, "0")}`;
}

const product = (t: Texts, order: Order): string => t.product[order.id] ?? order.id;

/** Who a refund is made for, as the client wrote it, else as the token says it. */
const callerOf = (callerId: string, { caller }: Context): string => callerId || (caller?.subject ?? "");

function explain(t: Texts, refused: Refusal): string {
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
const refusal = (t: Texts, refused: Refusal): ToolError =>
  new ToolError(explain(t, refused), { code: refused.reason, data: { status: "refused", reason: refused.reason } });

/** The three ways of not confirming leave the order alone and say so differently. */
function notConfirmed(t: Texts, id: string, how: "choseCancel" | "declined" | "dismissed") {
  const message = t.order[how](id);
  return text(message, { status: "not_confirmed", how, orderId: id, message });
}

/** The order server: look up, refund one, refund a batch. */
export function createOrderServer(options: ServerOptions): TenonServer<{ book: OrderBook }> {
  const own = textsFor(options.lang);
  const { log } = options;
  const id = z.string().min(1).max(64).describe(own.order.orderId);
  const callerId = z.string().max(200).default("").describe(own.order.callerId);
  const reason = z.string().min(1).max(500).describe(own.order.reason);

  const server = createServer({
    name: "orders",
    version: "1.0.0",
    ...(log && { logSink: (entry) => log(JSON.stringify(entry)) }),
    instructions: own.order.instructions,
    auth: options.auth,
    scopeHierarchy: SCOPE_HIERARCHY,
    stateKeys: stateKeysOf(options.place),
    store: options.stores,
    replicas: options.place.url !== undefined,
    ...(options.allowedHosts && { http: { allowedHosts: options.allowedHosts } }),
    lifespan: async () => {
      await options.database.ready();
      return { value: { book: createOrderBook(options.database) } };
    },
  });

  server.use(ownCallerOnly(own));

  server.tool(
    "query_order",
    {
      description: own.order.queryTool,
      input: z.object({ order_id: id, caller_id: callerId }),
      annotations: { readOnlyHint: true },
      scopes: [TOOL_SCOPES.order.query_order],
    },
    async (args, ctx) => {
      const t = textsOf(ctx.headers, own);
      const wanted = orderId(args.order_id);
      const found = await ctx.lifespan.book.find(wanted);
      if (!found) throw refusal(t, { reason: "unknown", orderId: wanted });
      const { order, refund } = found;
      const status = t.status[order.status] ?? order.status;
      const line =
        t.order.summary(order.id, product(t, order), status, yuan(order.amount)) +
        (refund ? t.order.refundedAlready(yuan(refund.amount), refund.at.slice(0, 10)) : "");
      return text(line, {
        orderId: order.id,
        product: product(t, order),
        status: order.status,
        amount: yuan(order.amount),
        refunded: refund !== undefined,
      });
    },
  );

  server.tool(
    "process_refund",
    {
      description: own.order.refundTool,
      input: z.object({ order_id: id, reason, caller_id: callerId }),
      annotations: { destructiveHint: true, idempotentHint: false },
      scopes: [TOOL_SCOPES.order.process_refund],
    },
    async (args, ctx) => {
      const t = textsOf(ctx.headers, own);
      const { book } = ctx.lifespan;
      const wanted = orderId(args.order_id);
      const idempotencyKey = ctx.idempotencyKey ?? (await ctx.step("key", () => randomUUID()));
      const done = (order: Order) => {
        const message = t.order.refunded(order.id, product(t, order), yuan(order.amount));
        return text(message, {
          status: "refunded",
          orderId: order.id,
          product: product(t, order),
          amount: yuan(order.amount),
          message,
        });
      };

      const checked = await book.check(wanted, { idempotencyKey });
      if ("refused" in checked) throw refusal(t, checked.refused);
      if ("refund" in checked) return done(checked.order); // the same call again: its first outcome
      const { ready: order } = checked;
      const amount = yuan(order.amount);
      if (order.amount >= CONFIRM_FROM) {
        const answer = await ctx.elicit(
          t.order.confirm(order.id, product(t, order), amount),
          { confirm: t.order.confirmChoice, cancel: t.order.cancelChoice },
          { key: "confirm" },
        );
        if (answer.action === "decline") return notConfirmed(t, order.id, "declined");
        if (answer.action === "cancel") return notConfirmed(t, order.id, "dismissed");
        if (answer.data === "cancel") return notConfirmed(t, order.id, "choseCancel");
        await ctx.log.info(t.order.confirmed(order.id, amount));
      }
      const outcome = await book.refund(order.id, {
        reason: args.reason,
        callerId: callerOf(args.caller_id, ctx),
        idempotencyKey,
      });
      if ("refused" in outcome) throw refusal(t, outcome.refused);
      return done(outcome.order);
    },
  );

  server.tool(
    "batch_refund",
    {
      description: own.order.batchTool,
      input: z.object({
        order_ids: z
          .union([z.string().max(10_000), z.array(z.string().max(64)).max(BATCH_SIZE * 2)])
          .describe(own.order.orderIds),
        reason,
        caller_id: callerId,
      }),
      annotations: { destructiveHint: true, idempotentHint: true },
      scopes: [TOOL_SCOPES.order.batch_refund],
    },
    async (args, ctx) => {
      const t = textsOf(ctx.headers, own);
      const listed = typeof args.order_ids === "string" ? args.order_ids.split(/[,，、;；\s]+/) : args.order_ids;
      const ids = [...new Set(listed.filter((one) => one.trim() !== "").map(orderId))];
      if (ids.length === 0 || ids.length > BATCH_SIZE)
        throw new ToolError(`order_ids: ${t.order.batchSize(BATCH_SIZE)}`);
      const call = ctx.idempotencyKey ?? randomUUID();
      const refunded: { orderId: string; amount: string }[] = [];
      const skipped: { orderId: string; reason: string; message: string }[] = [];
      let total = 0;

      await ctx.log.info(t.order.batchStarted(ids.length));
      for (const [i, one] of ids.entries()) {
        await setImmediate(); // SQLite works synchronously: progress goes out, and a cancellation comes in, between two orders
        if (ctx.signal.aborted) break; // what was refunded stays refunded; the rest is untouched
        const outcome = await ctx.lifespan.book.refund(one, {
          reason: args.reason,
          callerId: callerOf(args.caller_id, ctx),
          idempotencyKey: `${call}:${one}`,
          limit: BATCH_LIMIT,
        });
        if ("refused" in outcome) {
          const message = explain(t, outcome.refused);
          skipped.push({ orderId: one, reason: outcome.refused.reason, message });
          await ctx.log.warning(t.order.batchSkipped(one, message));
        } else {
          total += outcome.order.amount;
          refunded.push({ orderId: one, amount: yuan(outcome.order.amount) });
          await ctx.log.info(t.order.batchDone(one, yuan(outcome.order.amount)));
        }
        await ctx.progress(i + 1, ids.length, one);
      }
      const message = t.order.batchFinished(refunded.length, ids.length);
      await ctx.log.info(message);
      const lines = [message, ...skipped.map((one) => t.order.batchSkipped(one.orderId, one.message))];
      return text(lines.join("\n"), { total: ids.length, refunded, skipped, amount: yuan(total), message });
    },
  );

  server.resource(
    "order://{order_id}",
    { name: "order", title: own.order.resource, mimeType: "application/json", scopes: ["orders:read"] },
    async (variables, ctx) => {
      const found = await ctx.lifespan.book.find(orderId(variables.order_id ?? ""));
      if (!found) return undefined;
      const t = textsOf(ctx.headers, own);
      const { order, refund } = found;
      return {
        orderId: order.id,
        product: product(t, order),
        status: t.status[order.status],
        amount: yuan(order.amount),
        refundedAt: refund?.at ?? null,
      };
    },
  );
  return server;
}
