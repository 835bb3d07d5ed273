import { isRecord } from "@tenon/core";
import type { Told } from "./agent-words.ts";
import type { Ledger } from "./ledger.ts";
import type { Course } from "./load.ts";
import type { Order } from "./stories.ts";

/** One promise, and what speaks against it. */
export interface Check {
  readonly name: string;
  readonly problems: readonly string[];
}

/** What is known when everything is over. */
export interface Evidence {
  readonly orders: readonly Order[];
  readonly courses: readonly Course[];
  /** The threads as they are saved. */
  readonly threads: ReadonlyMap<string, readonly Told[]>;
  readonly ledger: Ledger;
  /** What servers and workers wrote to their logs, in the order in which it came. */
  readonly lines: readonly string[];
}

type ToolTold = Extract<Told, { kind: "tool" }>;

const toolsOf = (told: readonly Told[]): ToolTold[] => told.filter((one) => one.kind === "tool");
const record = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {});
/** `299.00` → 29900. */
const fen = (amount: unknown): number => Math.round(Number(String(amount).replace(/[^\d.]/g, "")) * 100);

/** What a person was told about an order: refunded, surely not, or that nobody knows. */
interface Word {
  readonly order: string;
  readonly says: "refunded" | "refused" | "unknown";
  readonly amount?: number;
  readonly text: string;
}

/** What an answer of a tool says about orders. */
function wordsOf(tool: ToolTold, orders: readonly string[]): Word[] {
  const about = record(tool.structured);
  const { text } = tool;
  if (tool.tool === "mcp_order_process_refund") {
    const [order = ""] = orders;
    if (about.status === "refunded")
      return [{ order: String(about.orderId), says: "refunded", amount: fen(about.amount), text }];
    if (about.status === "not_confirmed" || about.status === "refused") return [{ order, says: "refused", text }];
    // a person rejected it, or the call broke and says whether it may have run
    if (tool.error === null)
      return [{ order, says: text.startsWith("The person rejected") ? "refused" : "unknown", text }];
    return [{ order, says: tool.error.maybeExecuted === true ? "unknown" : "refused", text }];
  }
  if (tool.tool === "mcp_order_batch_refund") {
    if (!Array.isArray(about.refunded) || !Array.isArray(about.skipped)) {
      const never = tool.error !== null && tool.error.maybeExecuted !== true;
      return orders.map((order) => ({ order, says: never ? "refused" : "unknown", text }));
    }
    return [
      ...about.refunded.map((one) => ({
        order: String(record(one).orderId),
        says: "refunded" as const,
        amount: fen(record(one).amount),
        text,
      })),
      ...about.skipped.map((one) => ({ order: String(record(one).orderId), says: "refused" as const, text })),
    ];
  }
  return [];
}

/** Compares what people were told with what the shop has booked. */
export async function checkLedger({ orders, courses, threads, ledger }: Evidence): Promise<Check[]> {
  const refunds = await ledger.refunds();
  const messages = await ledger.messages();
  const byOrder = new Map<string, (typeof refunds)[number][]>();
  for (const refund of refunds) byOrder.set(refund.order_id, [...(byOrder.get(refund.order_id) ?? []), refund]);
  const amounts = new Map(orders.map(({ id, amount }) => [id, amount]));

  const twice: string[] = [];
  for (const [order, booked] of byOrder) {
    if (booked.length > 1) twice.push(`${order} was refunded ${booked.length} times`);
    for (const { amount } of booked) {
      if (amount !== amounts.get(order)) twice.push(`${order} costs ${amounts.get(order)}, refunded ${amount}`);
    }
  }

  const missing: string[] = [];
  const against: string[] = [];
  const doubled: string[] = [];
  const wanted = new Map<string, string[]>();
  for (const { story } of courses) {
    const ids = story.orders.map(({ id }) => id);
    for (const id of ids) wanted.set(id, [...(wanted.get(id) ?? []), story.tag]);
    const own = (order: string) => byOrder.get(order)?.find(({ reason }) => reason === story.tag);
    const told = threads.get(story.thread) ?? [];
    const words = toolsOf(told).flatMap((tool) => wordsOf(tool, ids));
    for (const { order, says, amount, text } of words) {
      const booked = own(order);
      if (says === "refunded" && !booked)
        missing.push(`${story.thread} was told that ${order} is refunded; it is not: ${text}`);
      if (says === "refunded" && booked && booked.amount !== amount) {
        missing.push(`${story.thread} was told ${amount} for ${order}, booked ${booked.amount}`);
      }
      if (says === "refused" && booked)
        against.push(`${story.thread} was told that ${order} is not refunded; it is: ${text}`);
    }
    const mayNot =
      story.kind === "rejected" ||
      story.kind === "undelivered" ||
      story.kind === "look" ||
      story.kind === "unconfirmed";
    if (mayNot)
      for (const order of ids) if (own(order)) against.push(`${story.thread} (${story.kind}) has ${order} refunded`);
    const good = words.filter(({ says }) => says === "refunded").map(({ order }) => order);
    for (const order of new Set(good)) {
      const times = good.filter((one) => one === order).length;
      if (times > 1) doubled.push(`${story.thread} was told ${times} times that ${order} is refunded`);
    }
  }
  const nobody = refunds.filter(({ order_id, reason }) => !wanted.get(order_id)?.includes(reason));

  const posted: string[] = [];
  for (const { story } of courses.filter((course) => course.story.kind === "message")) {
    const rows = messages.filter(({ content }) => content === story.tag);
    if (rows.length > 1) posted.push(`the message of ${story.thread} was sent ${rows.length} times`);
    const sent = toolsOf(threads.get(story.thread) ?? []).some((tool) => record(tool.structured).status === "sent");
    if (sent && !rows.some(({ status }) => status === "sent"))
      posted.push(`${story.thread} was told that its message was sent; it was not`);
  }

  return [
    { name: "each order is refunded at most once, with its own amount", problems: twice },
    { name: "each refund that somebody was told is booked", problems: missing },
    { name: "nothing is booked that somebody was told is refused", problems: against },
    {
      name: "nothing is booked that nobody asked for",
      problems: nobody.map((one) => `${one.order_id} for "${one.reason}"`),
    },
    { name: "each text message is sent at most once, and those told as sent are", problems: posted },
    { name: "no answered question takes effect twice", problems: doubled },
  ];
}

/** Compares each conversation with itself. */
export function checkThreads({ courses, threads }: Evidence, unended: readonly Course[]): Check[] {
  const torn: string[] = [];
  const lost: string[] = [];
  for (const { story, seen } of courses) {
    const told = threads.get(story.thread);
    if (!told || story.kind === "task") continue; // one that did not end is told of elsewhere, and a task is no conversation
    const humans = told.filter(({ kind }) => kind === "human");
    if (humans.length !== 1) torn.push(`${story.thread} has ${humans.length} messages of the person instead of 1`);
    const calls = told.flatMap((one) => (one.kind === "ai" ? one.calls.map(({ id }) => id) : [])).sort();
    const answered = toolsOf(told)
      .map(({ callId }) => callId)
      .sort();
    if (JSON.stringify(calls) !== JSON.stringify(answered))
      torn.push(`${story.thread} calls ${calls} and has answers to ${answered}`);
    for (const { text } of toolsOf(told)) {
      // LangChain's words for a call of a tool that the agent does not have: all these tools are there, if not at all times
      if (text.includes("is not a valid tool")) torn.push(`${story.thread} lost a call: ${text.slice(0, 200)}`);
    }
    const replies = told.filter((one) => one.kind === "ai" && one.calls.length === 0);
    if (replies.length !== 1 || told.at(-1) !== replies[0])
      torn.push(
        `${story.thread} has ${replies.length} replies instead of 1 at its end: ${JSON.stringify(told.slice(-3))}`,
      );
    const kept = new Set(told.map((one) => JSON.stringify(one)));
    for (const one of seen.flatMap((done) => done.told)) {
      if (!kept.has(JSON.stringify(one)))
        lost.push(`${story.thread} lost what was shown: ${JSON.stringify(one).slice(0, 300)}`);
    }
  }
  return [
    {
      name: "each conversation and each accepted task comes to its end",
      problems: unended.map(
        ({ story, errors, seen }) =>
          `${story.thread} (${story.kind}) is ${seen.at(-1)?.status ?? "unheard of"}; errors: ${[...new Set(errors)].slice(-3).join(" | ")}`,
      ),
    },
    { name: "each message has one reply, and each call one answer", problems: torn },
    { name: "what a person was shown stays in the conversation", problems: lost },
  ];
}
