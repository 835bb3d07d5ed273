import { randomUUID } from "node:crypto";
import { createServer, type TenonServer, text } from "@tenon/server";
import { z } from "zod";
import { noteStateKeys } from "../database/shared-keys.ts";
import { type Texts, textsFor, yuan } from "../texts/index.ts";
import { ownCallerOnly, SCOPE_HIERARCHY, TOOL_SCOPES, textsOf } from "./access.ts";
import { batchRefund } from "./batch-refund.ts";
import type { ServerOptions } from "./options.ts";
import { createOrderBook, type Order, type OrderBook } from "./order-book.ts";
import { callerOf, orderId, sharedArguments } from "./order-words.ts";
import { refusal } from "./refusals.ts";
import { stateKeysOf } from "./trust.ts";

/** From this amount on the user confirms a refund again. Fen. */
const CONFIRM_FROM = 50_000;

const product = (t: Texts, order: Order): string => t.product[order.id] ?? order.id;

/** The three ways of not confirming leave the order alone and say so differently. */
function notConfirmed(t: Texts, id: string, how: "choseCancel" | "declined" | "dismissed") {
  const message = t.order[how](id);
  return text(message, { status: "not_confirmed", how, orderId: id, message });
}

/** The order server: look up, refund one, refund a batch. */
export function createOrderServer(options: ServerOptions): TenonServer<{ book: OrderBook }> {
  const own = textsFor(options.lang);
  const { log } = options;
  const { order_id, reason, caller_id } = sharedArguments(own);

  const stateKeys = stateKeysOf(options.place);
  const shared = options.place.url !== undefined;
  const server = createServer({
    name: "orders",
    version: "1.0.0",
    ...(log && { logSink: (entry) => log(JSON.stringify(entry)) }),
    instructions: own.order.instructions,
    auth: options.auth,
    scopeHierarchy: SCOPE_HIERARCHY,
    stateKeys,
    store: options.stores,
    replicas: shared,
    ...(options.concurrency !== undefined && { tasks: { concurrency: options.concurrency } }),
    ...(options.allowedHosts && { http: { allowedHosts: options.allowedHosts } }),
    lifespan: async () => {
      await options.database.ready();
      if (shared && !options.onlyTasks) await noteStateKeys(options.database, "order", stateKeys);
      return { value: { book: createOrderBook(options.database) } };
    },
  });

  server.use(ownCallerOnly(own));

  server.tool(
    "query_order",
    {
      description: own.order.queryTool,
      input: z.object({ order_id, caller_id }),
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
      input: z.object({ order_id, reason, caller_id }),
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
      ctx.notify.resourceUpdated(`order://${order.id}`);
      return done(outcome.order);
    },
  );

  server.use(batchRefund(own));

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
