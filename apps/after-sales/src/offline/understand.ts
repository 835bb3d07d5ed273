/** Something the user wants done, in the order of the message. */
export type Wish =
  | { kind: "query"; orderId: string }
  | { kind: "refund"; orderId: string; reason: string | undefined }
  | { kind: "batch"; orderIds: readonly string[]; reason: string | undefined }
  /** A refund is spoken of in order not to have it. */
  | { kind: "no_refund" }
  /** Several orders and a refund are spoken of, but not plainly asked for: nothing is done without asking back. */
  | { kind: "unclear_batch"; orderIds: readonly string[] }
  | { kind: "sms"; phone: string | undefined; content: string | undefined }
  | { kind: "policy"; about: string }
  /** An order is meant, but none was named, here or before. */
  | { kind: "which_order" };

const ORDER = /(?<![a-z])ord[-_ ]?\d{1,20}(?!\d)/gi;
const REFUND = /退款|退钱|退掉|退货款|refund|money back/i;
const QUERY = /查询|查一下|查下|查看|查|状态|详情|look ?up|check|status|show|where is|details?/i;
const SMS = /短信|发信息|发消息|\bsms\b|text message|\btext\b|send .*message/i;
const POLICY =
  /政策|规定|规则|多久到账|几天|多少天|赠品|换货|无理由|policy|policies|how long|how many days|gifts?|exchange|without a reason/i;
const SAME_ORDER = /该订单|这个|那个|这单|此订单|它|刚才|this|that|it\b|the order|the same/i;
const PHONE = /(?<![\d-])\d{5,15}(?!\d)/;

const CONTENT = /(?:短信)?(?:内容|content)\s*(?:为|是|is)?\s*[:：]?\s*/i;
/** The recipient, named after the content. */
const RECIPIENT =
  /[,，;；。\s]\s*(?:发到|发给|给|to|手机号?码?|电话|号码|phone(?: number)?|number)\s*(?:为|是|is)?\s*[:：]?\s*\d{5,15}(?!\d)/i;
const QUOTES: Readonly<Record<string, string>> = { '"': '"', "“": "”", "「": "」", "'": "'" };

const CLAUSES = /[,，。.;；!！?？\n]|\b(?=but\b|except\b)|(?=但|除了)/;
/** A refund that is not wanted. Question forms such as 能不能退款 are none of these. */
const UNWANTED: readonly RegExp[] = [
  /(?:(?<![能可是要会])不(?:要|用|想|需要|必|能|可以?|准|许)?|(?<!特)别|勿|无需|无须|取消|撤销|撤回|放弃|停止|暂停)(?:再|先|给|我|他|帮|为|办理|申请|进行|做|要|对|把|的|\s|ord[-_ ]?\d+|订单|这个|该|它)*(?:退款|退钱|退掉|退货款)/i,
  /退款\S{0,3}(?:取消|算了|不用了|不必了|先不)/,
  /\b(?:do not|don['’]?t|does not|doesn['’]?t|did not|didn['’]?t|won['’]?t|will not|not|never|no|no longer|cancel|stop|withdraw)(?:\s+(?:to|a|an|any|the|my|me|us|for|of|on|want|need|wish|please|give|make|process|issue|get|ask|require|longer|this|that|it|order|ord[-_ ]?\d+))*\s+(?:refund|money back)/i,
  /\brefund\s+(?:is|was)(?:n['’]?t|\s+not|\s+no longer)\b/i,
  /(?:\b(?:not|except(?: for)?|without)|除了|不包括|别退|不退|不要退)\s*(?:order\s+|订单\s*)?ord[-_ ]?\d/i,
];

/** A refund that was made already is told about, not asked for. */
const REPORTED =
  /(?:已经?|成功|完成)退款|退款(?:已|成功|完成|到账|金额|进度|状态|记录)|\brefund\b.*\b(?:has been|was|is) (?:accepted|made|successful)|\b(?:has|have|had|was|were|been|is|are) (?:already )?refunded/i;

/** A question, not an order; "could you refund …?" is a polite one. */
const QUESTION =
  /(?<!\b(?:can|could|would|will) you\b[^?？]*)[?？]|吗|呢|怎么|怎样|如何|能否|能不能|可不可以|是否|要不要|多久|什么|哪/i;
const ASKED_FIRST = /^\s*(?:is|are|was|were|has|have|had|did|do|does|how|what|when|why|which|should|may|if|whether)\b/i;
/** Something is left out, or not decided. */
const LEFT_OUT =
  /\b(?:but|except|excluding|leave|keep|not|without|other than|instead|undo|refuse|avoid|hold|wait|whether|unless|if|decided|compare|status)\b|n['’]t\b|不|别|除|留|以外|勿|先/i;
const DEFECT =
  /(?:(?:有|存在|出现|因|为|的|是)*(?:产品|商品|货物?)?的?(?:质量|品质)?的?(?:有|存在|出现|不好)?(?:问题|故障|瑕疵|缺陷)了?|坏了|破损|损坏|发错货?了?|\b(?:(?:have|has|had|with|of|is|are|was|were|a|the|some)\s+)*(?:(?:product|goods|item)\s+)?(?:quality\s+)?(?:problems?|issues?|defects?|broken|faulty|damaged|defective)\b)/gi;
const FILLER =
  /批量|退款|退钱|退掉|退货款|处理|办理|进行|申请|需要|请|帮我|帮忙|麻烦|我要|我想要?|给我|给|为|把|将|对|两个|几个|三个|这些?|个|单|订单|号|都|全部|一起|一下|一并|吧|谢谢|您好?|你好?|和|与|及|以及|跟|、|(?:i['’]d|refund(?:s|ed|ing)?|money back|batch|please|kindly|process|issue|make|give|can|could|would|will|you|i|we|me|us|need|want|like|to|get|a|an|the|for|of|as|on|in|both|all|orders?|numbers?|and|with|my|our|these|those|two|three|them|together|thanks?|thank|hi|hello)(?![a-z])/gi;

/**
 * Whether a message plainly asks to refund several orders. A batch needs no approval, so nothing but orders, the wish and a
 * reason may be in it: what is left over may mean anything.
 */
function isPlainBatch(text: string): boolean {
  if (QUESTION.test(text) || ASKED_FIRST.test(text) || LEFT_OUT.test(text)) return false;
  return text.split(CLAUSES).every((clause) => {
    if (!REFUND.test(clause) && orderIdsIn(clause).length === 0) return true; // a reason
    const rest = clause
      .replace(ORDER, " ")
      .replace(/(?:由于|因为|because of|because|due to|since|for reason of).*$/i, " ")
      .replace(DEFECT, " ")
      .replace(FILLER, " ");
    return !/[\p{L}\p{N}]/u.test(rest);
  });
}

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

/** What is to be sent, and the message without it: what is left are the person's own wishes. */
function splitContent(text: string): { content: string | undefined; rest: string } {
  const start = CONTENT.exec(text);
  if (!start) return { content: undefined, rest: text };
  const before = text.slice(0, start.index);
  const after = text.slice(start.index + start[0].length);
  const quote = QUOTES[after.charAt(0)];
  const quoted = quote === undefined ? -1 : after.indexOf(quote, 1);
  if (quoted > 0) return { content: after.slice(1, quoted).trim(), rest: `${before} ${after.slice(quoted + 1)}` };
  // a number in the content is not the recipient's when that was named before
  const end = PHONE.test(before) ? -1 : after.search(RECIPIENT);
  const content = end < 0 ? after : after.slice(0, end);
  return { content: content.trim() || undefined, rest: end < 0 ? before : `${before} ${after.slice(end)}` };
}

/** What is left of a message without the clauses that say what not to refund. */
function wanted(text: string): string {
  return text
    .split(CLAUSES)
    .filter((clause) => !UNWANTED.some((pattern) => pattern.test(clause)))
    .join(",");
}

function refundWish(spoken: string, latest: string | undefined): Wish {
  const rest = wanted(spoken);
  if (!REFUND.test(rest)) return { kind: "no_refund" };
  const named = orderIdsIn(rest);
  const [only = latest] = named;
  const reason = reasonIn(rest);
  if (only === undefined) return { kind: "which_order" };
  if (named.length < 2) return { kind: "refund", orderId: only, reason };
  return isPlainBatch(spoken) ? { kind: "batch", orderIds: named, reason } : { kind: "unclear_batch", orderIds: named };
}

/**
 * Reads a free message into wishes. Rules, not a model: it knows the desk's few jobs and nothing else.
 * @param earlier order numbers mentioned before, latest first: what "this order" means
 * @returns no wishes when the message is about something else
 */
export function understand(text: string, earlier: readonly string[]): Wish[] {
  const { content, rest } = splitContent(text);
  const sms = SMS.test(rest) || (content !== undefined && PHONE.test(rest));
  // the content of a message may speak of refunds itself
  const spoken = sms ? rest : text;
  const asking = spoken
    .split(CLAUSES)
    .filter((clause) => !REPORTED.test(clause))
    .join(",");
  const refund = REFUND.test(asking) && !/退款(模板|政策|多久)/.test(spoken);
  const policy = POLICY.test(spoken) && !(refund && orderIdsIn(spoken).length > 0);
  if (policy && !sms) return [{ kind: "policy", about: text }];

  const [latest] = earlier;
  const wishes: Wish[] = [];
  if (refund) wishes.push(refundWish(asking, latest));
  else if (!sms) {
    const named = orderIdsIn(spoken);
    const asksSame = named.length === 0 && latest !== undefined && QUERY.test(spoken) && SAME_ORDER.test(spoken);
    const asked = asksSame ? [latest] : named;
    if (asked.length > 0) wishes.push(...asked.map((orderId) => ({ kind: "query", orderId }) as const));
    else if (QUERY.test(spoken) && /订单|order/i.test(spoken)) wishes.push({ kind: "which_order" });
  }
  if (sms) wishes.push({ kind: "sms", phone: PHONE.exec(rest.replace(ORDER, " "))?.[0], content });
  return wishes;
}
