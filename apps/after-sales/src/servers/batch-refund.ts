import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { defineTool, ToolError, text } from "@tenon/server";
import { z } from "zod";
import { type Texts, yuan } from "../texts/index.ts";
import { TOOL_SCOPES, textsOf } from "./access.ts";
import type { Refusal } from "./order-book.ts";
import { callerOf, type OrderContext, orderId, sharedArguments } from "./order-words.ts";
import { explain } from "./refusals.ts";

/** Only orders up to this amount. Fen. */
const AMOUNT_LIMIT = 50_000;
/** Orders of a call that its caller waits for, and of one that is a task. */
const CALL_ORDERS = 100;
const TASK_ORDERS = 10_000;
/** Characters of a list in one text: about twenty for each order. */
const LIST_CHARS = 200_000;
/** Orders of a task at once: in Postgres they are on the disk together. */
const LANES = 4;
/** A task of many orders on a slow database. */
const LONGEST_MS = 60 * 60_000;

/** What became of one order, as a task keeps it. */
type OneOrder = { readonly amount: number } | { readonly reason: Refusal["reason"]; readonly message: string };

/** The order numbers of a list however it is written, each once. */
function readIds(list: string | readonly string[]): readonly string[] {
  const listed = typeof list === "string" ? list.split(/[,，、;；\s]+/) : list;
  return [...new Set(listed.filter((one) => one.trim() !== "").map(orderId))];
}

/** Works through a list with so many at once; after a failure nothing more is begun. @throws the first failure */
async function inLanes(items: readonly string[], lanes: number, work: (item: string) => Promise<void>): Promise<void> {
  const rest = items.values();
  let failed = false;
  async function lane(): Promise<void> {
    for (const item of rest) {
      if (failed) return;
      await work(item).catch((error: unknown) => {
        failed = true;
        throw error;
      });
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane));
}

/**
 * The tool that refunds many orders. More than a caller should wait for become a task, which goes on from the last finished order,
 * whichever process runs it then.
 */
export function batchRefund(own: Texts) {
  const { caller_id, reason } = sharedArguments(own);
  const list = z.union([z.string().max(LIST_CHARS), z.array(z.string().max(64)).max(TASK_ORDERS)]);
  return defineTool(
    "batch_refund",
    {
      description: own.order.batchTool,
      input: z.object({ order_ids: list.describe(own.order.orderIds), reason, caller_id }),
      annotations: { destructiveHint: true, idempotentHint: true },
      scopes: [TOOL_SCOPES.order.batch_refund],
      task: { use: "optional", start: "handler" },
      timeoutMs: LONGEST_MS,
    },
    async (args, ctx: OrderContext) => {
      const t = textsOf(ctx.headers, own);
      const ids = readIds(args.order_ids);
      if (ids.length > CALL_ORDERS && ids.length <= TASK_ORDERS) await ctx.startTask(); // nothing, where a client knows no tasks
      const most = ctx.task ? TASK_ORDERS : CALL_ORDERS;
      if (ids.length === 0 || ids.length > most) throw new ToolError(`order_ids: ${t.order.batchSize(most)}`);
      const call = ctx.idempotencyKey ?? (await ctx.step("call", () => randomUUID()));
      const refundOne = async (id: string): Promise<OneOrder> => {
        const outcome = await ctx.lifespan.book.refund(id, {
          reason: args.reason,
          callerId: callerOf(args.caller_id, ctx),
          idempotencyKey: `${call}:${id}`,
          limit: AMOUNT_LIMIT,
        });
        if ("refused" in outcome) {
          const message = explain(t, outcome.refused);
          await ctx.log.warning(t.order.batchSkipped(id, message));
          return { reason: outcome.refused.reason, message };
        }
        ctx.notify.resourceUpdated(`order://${id}`);
        await ctx.log.info(t.order.batchDone(id, yuan(outcome.order.amount)));
        return { amount: outcome.order.amount };
      };
      await ctx.step("started", () => ctx.log.info(t.order.batchStarted(ids.length)));
      const outcomes = new Map<string, OneOrder>();
      await inLanes(ids, ctx.task ? LANES : 1, async (id) => {
        await setImmediate(); // SQLite works synchronously: progress goes out, and a cancellation comes in, between two orders
        if (ctx.task) ctx.signal.throwIfAborted(); // it goes on elsewhere, or was cancelled
        if (ctx.signal.aborted) return; // what was refunded stays refunded; the rest is untouched
        let now = false; // or in an earlier run of the task, which has told of it
        const one = await ctx.step(id, () => {
          now = true;
          return refundOne(id);
        });
        outcomes.set(id, one);
        if (now) await ctx.progress(outcomes.size, ids.length, id);
      });

      const refunded: { orderId: string; amount: string }[] = [];
      const skipped: { orderId: string; reason: string; message: string }[] = [];
      let total = 0;
      for (const id of ids) {
        const one = outcomes.get(id);
        if (!one) continue; // the call was cancelled before
        if ("amount" in one) {
          total += one.amount;
          refunded.push({ orderId: id, amount: yuan(one.amount) });
        } else skipped.push({ orderId: id, ...one });
      }
      const message = t.order.batchFinished(refunded.length, ids.length);
      await ctx.log.info(message);
      const lines = [message, ...skipped.map((one) => t.order.batchSkipped(one.orderId, one.message))];
      return text(lines.join("\n"), { total: ids.length, refunded, skipped, amount: yuan(total), message });
    },
  );
}
