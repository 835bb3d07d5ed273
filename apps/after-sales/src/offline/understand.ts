/** Something the user wants done, in the order of the message. */
export type Wish =
  | { kind: "query"; orderId: string }
  | { kind: "refund"; orderId: string; reason: string | undefined }
  | { kind: "batch"; orderIds: readonly string[]; reason: string | undefined }
  | { kind: "sms"; phone: string | undefined; content: string | undefined }
  | { kind: "policy"; about: string }
  /** An order is meant, but none was named, here or before. */
  | { kind: "which_order" };

const ORDER = /ord[-_ ]?\d{1,9}/gi;
const REFUND = /退款|退钱|退掉|退货款|refund|money back/i;
const QUERY = /查询|查一下|查下|查看|查|状态|详情|look ?up|check|status|show|where is|details?/i;
const SMS = /短信|发信息|发消息|\bsms\b|text message|\btext\b|send .*message/i;
const POLICY = /政策|规定|规则|多久到账|几天|多少天|赠品|换货|policy|policies|how long|how many days|gifts?|exchange/i;
const SAME_ORDER = /该订单|这个|那个|这单|此订单|它|刚才|this|that|it\b|the order|the same/i;
const PHONE = /(?<!\d)\d{5,15}(?!\d)/;
const CONTENT =
  /(?:短信)?(?:内容|content)\s*(?:为|是|is)?\s*[:：]?\s*["“「']?(.+?)["”」']?(?=[,，;；。]?\s*(?:手机号?|电话|号码|phone|number|to \d)|$)/is;

/** `ord-1` → `ORD-001`. */
function normalise(id: string): string {
  return `ORD-${id.replace(/\D/g, "").padStart(3, "0")}`;
}

/** The order numbers in a text, first mention first, each once. */
export function orderIdsIn(text: string): string[] {
  return [...new Set([...text.matchAll(ORDER)].map(([id]) => normalise(id)))];
}

/** The clause that says why, without order numbers and connecting words. */
function reasonIn(text: string): string | undefined {
  const clauses = text.split(/[,，。.;；!！]/).map((clause) =>
    clause
      .replace(ORDER, "")
      .replace(/^[\s、和与及and]+/, "")
      .replace(/^(由于|因为|该订单|这个|because of|because|due to|since|for)\s*/i, "")
      .trim(),
  );
  return clauses.find(
    (clause) =>
      clause.length > 1 && !REFUND.test(clause) && !SMS.test(clause) && !PHONE.test(clause) && !QUERY.test(clause),
  );
}

function smsIn(text: string): Wish {
  const content = CONTENT.exec(text)?.[1]?.trim();
  // a number inside the content is not the recipient's
  const rest = content ? text.replace(content, " ") : text;
  return { kind: "sms", phone: PHONE.exec(rest)?.[0], content };
}

/** The text without the content of a message to be sent, which may speak of refunds itself. */
function withoutContent(text: string): string {
  const content = SMS.test(text) ? CONTENT.exec(text)?.[1] : undefined;
  return content ? text.replace(content, " ") : text;
}

/**
 * Reads a free message into wishes. Rules, not a model: it knows the desk's few jobs and nothing else.
 * @param earlier order numbers mentioned before, latest first: what "this order" means
 * @returns no wishes when the message is about something else
 */
export function understand(text: string, earlier: readonly string[]): Wish[] {
  const spoken = withoutContent(text);
  const sms = SMS.test(spoken) || (PHONE.test(spoken) && CONTENT.test(text));
  const refund = REFUND.test(spoken) && !/退款(模板|政策|多久)/.test(spoken);
  const policy = POLICY.test(spoken) && !(refund && orderIdsIn(spoken).length > 0);
  if (policy && !sms) return [{ kind: "policy", about: text }];

  const named = orderIdsIn(sms && !refund ? "" : spoken);
  const latest = earlier[0];
  const ids = named.length > 0 ? named : refund && latest !== undefined ? [latest] : [];
  const wishes: Wish[] = [];
  const [only] = ids;
  if (refund) {
    const reason = reasonIn(spoken);
    if (only === undefined) wishes.push({ kind: "which_order" });
    else if (ids.length > 1) wishes.push({ kind: "batch", orderIds: ids, reason });
    else wishes.push({ kind: "refund", orderId: only, reason });
  } else if (!sms && (named.length > 0 || QUERY.test(spoken))) {
    const asked = named.length > 0 ? named : SAME_ORDER.test(spoken) && latest !== undefined ? [latest] : [];
    if (asked.length > 0) wishes.push(...asked.map((orderId) => ({ kind: "query", orderId }) as const));
    else if (/订单|order/i.test(spoken)) wishes.push({ kind: "which_order" });
  }
  if (sms) wishes.push(smsIn(text));
  return wishes;
}
