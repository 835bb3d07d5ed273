import type { OfflineReply, OfflineResult, OfflineRules, OfflineTurn } from "@tenon/agent";
import { isRecord } from "@tenon/core";
import { attachmentsIn, withoutAttachments } from "../agent/attachments.ts";
import { rejectionReason } from "../agent/rejection.ts";
import { type Lang, type Texts, textsFor } from "../texts/index.ts";
import { orderIdsIn, understand, type Wish } from "./understand.ts";

/** Model-side names of the tools the rules know. */
const TOOL = {
  query: "mcp_order_query_order",
  refund: "mcp_order_process_refund",
  batch: "mcp_order_batch_refund",
  sms: "mcp_notification_send_sms",
  phone: "validate_phone",
} as const;

/** One wish seen so far: a call to make, or what to say about it. */
type Step = { call: NonNullable<OfflineReply["calls"]>[number] } | { say: string; refunded?: boolean };

interface Desk {
  t: Texts;
  turn: OfflineTurn;
  /** Whether the refunds before the current wish in this message were made. */
  refunded: boolean | undefined;
}

/** A full stop where the text has none. */
function sentence(t: Texts, text: string): string {
  return /[。.!?！？]$/.test(text) ? text : `${text}${t.lang === "zh" ? "。" : "."}`;
}

const bare = (text: string): string => text.replace(/[。.]$/, "");

/** A section of the system prompt by its heading. */
function section(system: string, heading: string): string | undefined {
  const start = system.indexOf(`## ${heading}\n`);
  if (start < 0) return undefined;
  const body = system.slice(start + heading.length + 4);
  const end = body.indexOf("\n## ");
  return (end < 0 ? body : body.slice(0, end)).trim() || undefined;
}

function structured(result: OfflineResult): Record<string, unknown> {
  const artifact = isRecord(result.artifact) ? result.artifact : {};
  return isRecord(artifact.structured) ? artifact.structured : {};
}

function resultOf(desk: Desk, name: string, argument: string, value: unknown): OfflineResult | undefined {
  return desk.turn.results.find(
    (result) => result.name === name && JSON.stringify(result.args[argument]) === JSON.stringify(value),
  );
}

/** Why a server does not give something, where the desk knows. */
function whyNot({ t, turn }: Desk, server: "order" | "notification"): string | undefined {
  const lines = section(turn.system, t.agent.unavailableHeading)?.split("\n") ?? [];
  return lines.find((line) => line.startsWith(`- ${server}: `))?.slice(server.length + 4);
}

/** The call, or the honest word that its server is not there. */
function callOrSay(desk: Desk, name: string, args: Record<string, unknown>): Step {
  const { t, turn } = desk;
  if (turn.tools.some((tool) => tool.name === name)) return { call: { name, args } };
  const server = name.startsWith("mcp_order_") ? "order" : "notification";
  return { say: whyNot(desk, server) ?? t.offline.unavailable(t.offline.serverNames[server] ?? server) };
}

function query(desk: Desk, orderId: string): Step {
  const result = resultOf(desk, TOOL.query, "order_id", orderId);
  if (!result) return callOrSay(desk, TOOL.query, { order_id: orderId });
  return { say: sentence(desk.t, bare(result.text)) };
}

function refund(desk: Desk, orderId: string, reason: string | undefined): Step {
  const { t, turn } = desk;
  // an edited call may name another order, so a result of this tool counts whatever its order
  const result = turn.results.find((one) => one.name === TOOL.refund);
  if (!result) return callOrSay(desk, TOOL.refund, { order_id: orderId, reason: reason ?? t.offline.defaultReason });
  const about = structured(result);
  if (about.status === "refunded") {
    const template = section(turn.system, t.agent.templateHeading);
    const reply = template
      ?.replaceAll("{order_id}", String(about.orderId))
      .replaceAll("{amount}", String(about.amount));
    const offer = desk.turn.text.match(/\d{5,}/) ? "" : t.offline.offerSms;
    return {
      say: `${reply ?? sentence(t, String(about.message))}${t.lang === "zh" || !offer ? "" : " "}${offer}`,
      refunded: true,
    };
  }
  if (about.status === "not_confirmed" || about.status === "refused") {
    return { say: t.offline.notRefunded(bare(result.text)), refunded: false };
  }
  const rejected = rejectionReason(result.text);
  if (rejected !== undefined) return { say: t.offline.rejected(bare(rejected)), refunded: false };
  // a reviewer answered for the tool, or the server could not be reached
  return result.status === "error"
    ? { say: t.offline.notRefunded(bare(result.text)), refunded: false }
    : { say: sentence(t, result.text), refunded: false };
}

function batch(desk: Desk, orderIds: readonly string[], reason: string | undefined): Step {
  const { t } = desk;
  const result = desk.turn.results.find((one) => one.name === TOOL.batch);
  if (!result) return callOrSay(desk, TOOL.batch, { order_ids: orderIds, reason: reason ?? t.offline.defaultReason });
  const about = structured(result);
  if (!Array.isArray(about.refunded) || !Array.isArray(about.skipped))
    return { say: t.offline.failed(bare(result.text)), refunded: false };
  const done = t.offline.batch(about.refunded.length, Number(about.total), String(about.amount));
  const skipped = about.skipped.filter(isRecord).map((one) => String(one.message));
  const list = skipped.length > 0 ? t.offline.batchSkipped(skipped.join(t.lang === "zh" ? "；" : "; ")) : "";
  return { say: [done, list].filter(Boolean).join(t.lang === "zh" ? "" : " "), refunded: about.refunded.length > 0 };
}

/** What the last successful refund of this thread was about, for a message without content. */
function lastRefund(turn: OfflineTurn): { orderId: string; amount: string } | undefined {
  for (const message of [...turn.messages].reverse()) {
    const artifact = "artifact" in message && isRecord(message.artifact) ? message.artifact.structured : undefined;
    if (isRecord(artifact) && artifact.status === "refunded") {
      return { orderId: String(artifact.orderId), amount: String(artifact.amount) };
    }
  }
  return undefined;
}

function sms(desk: Desk, phone: string | undefined, given: string | undefined): Step {
  const { t, turn } = desk;
  if (desk.refunded === false) return { say: t.offline.smsWithheld };
  if (phone === undefined) return { say: t.offline.needPhone };
  const last = lastRefund(turn);
  const content = given ?? (last && t.offline.smsDefault(last.orderId, last.amount));
  if (content === undefined) return { say: t.offline.needContent };
  const checked = resultOf(desk, TOOL.phone, "phone", phone);
  if (!checked) return callOrSay(desk, TOOL.phone, { phone });
  if (checked.status === "error" || checked.text === t.agent.phoneInvalid(phone))
    return { say: sentence(t, bare(checked.text)) };
  const result = resultOf(desk, TOOL.sms, "phone", phone);
  if (!result) return callOrSay(desk, TOOL.sms, { phone, content });
  return { say: result.status === "success" ? t.offline.smsSent(phone, content) : t.offline.failed(bare(result.text)) };
}

/** The lines of the policy that answer, or all of it. */
function policy(desk: Desk, about: string): Step {
  const { t, turn } = desk;
  const whole = section(turn.system, t.agent.policyHeading);
  if (whole === undefined) {
    const why = whyNot(desk, "notification");
    const down = t.offline.unavailable(t.offline.serverNames.notification ?? "");
    return { say: why === undefined || why === down ? t.offline.noPolicy : why };
  }
  const topics: [RegExp, number][] = [
    [/赠品|gift/i, 3],
    [/换货|质量|exchange|defect/i, 2],
    [/到账|多久|money|how long/i, 4],
    [/无理由|without a reason/i, 1],
  ];
  const wanted = topics.filter(([topic]) => topic.test(about)).map(([, number]) => `${number}.`);
  const lines = whole.split("\n").filter((line) => /^\d\./.test(line));
  const fitting = lines.filter((line) => wanted.some((number) => line.startsWith(number)));
  return { say: (fitting.length > 0 ? fitting : lines).join("\n") || whole };
}

function step(desk: Desk, wish: Wish): Step {
  switch (wish.kind) {
    case "query":
      return query(desk, wish.orderId);
    case "refund":
      return refund(desk, wish.orderId, wish.reason);
    case "batch":
      return batch(desk, wish.orderIds, wish.reason);
    case "no_refund":
      return { say: desk.t.offline.nothingRefunded };
    case "sms":
      return sms(desk, wish.phone, wish.content);
    case "policy":
      return policy(desk, wish.about);
    case "unclear_batch":
      return { say: desk.t.offline.unclearBatch(wish.orderIds.join(desk.t.lang === "zh" ? "、" : ", ")) };
    case "which_order":
      return { say: desk.t.offline.needOrder };
  }
}

/** Order numbers mentioned in the thread before this message, latest first. */
function earlierOrders(turn: OfflineTurn): string[] {
  const before = turn.messages.slice(
    0,
    turn.messages.findLastIndex((message) => message.type === "human"),
  );
  return before.flatMap((message) => orderIdsIn(withoutAttachments(message.text))).reverse();
}

/** Whether the assistant has just offered a message, so that a bare phone number is the answer to it. */
function offeredSms(t: Texts, turn: OfflineTurn): boolean {
  const before = turn.messages.slice(
    0,
    turn.messages.findLastIndex((message) => message.type === "human"),
  );
  const last = before.findLast((message) => message.type === "ai")?.text ?? "";
  return [t.offline.offerSms, t.offline.needPhone, t.offline.needContent].some((line) => last.includes(line));
}

/**
 * The offline stand-in's knowledge of this desk: one wish after the other, one call at a time, and an honest word for
 * everything else.
 */
export function offlineRules(lang: Lang): OfflineRules {
  const t = textsFor(lang);
  return {
    reply(given) {
      const turn = { ...given, text: withoutAttachments(given.text) };
      const attached = attachmentsIn(given.text).flatMap(orderIdsIn);
      let wishes = understand(turn.text, [...attached, ...earlierOrders(turn)]);
      const phone = /(?<!\d)\d{5,15}(?!\d)/.exec(turn.text)?.[0];
      if (wishes.length === 0 && phone && offeredSms(t, turn)) wishes = [{ kind: "sms", phone, content: undefined }];
      if (wishes.length === 0) return { text: t.offline.honest };
      const said: string[] = [];
      let refunded: boolean | undefined;
      for (const wish of wishes) {
        const next = step({ t, turn, refunded }, wish);
        if ("call" in next) return { calls: [next.call] };
        said.push(next.say);
        refunded = next.refunded ?? refunded;
      }
      return { text: said.join("\n") };
    },
  };
}
