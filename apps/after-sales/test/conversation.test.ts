import { describe, expect, it } from "vitest";
import { dataDirectory, outbox, Program, processesOn, refundRows, talk } from "./desk.ts";

const SCRIPTED = {
  zh: [
    "查询订单ORD-001",
    "这个耳机有质量问题，请帮我退款",
    "approve",
    "ORD-003 显示器屏幕坏了，需要退款",
    "approve",
    "1",
    "ORD-002、ORD-004 由于产品质量问题，请批量退款",
    "给 18812345678 发短信，内容：ORD-001 已经退款",
    "quit",
  ],
  en: [
    "Look up order ORD-001",
    "These earphones have a quality problem, please refund them",
    "approve",
    "ORD-003 the monitor's screen is broken, I need a refund",
    "approve",
    "1",
    "ORD-002 and ORD-004 have quality problems, please refund them as a batch",
    "Send a text message to 18812345678, content: ORD-001 has been refunded",
    "quit",
  ],
};
const FREE = {
  zh: [
    "查询订单ORD-001",
    "该订单耳机质量有问题，请帮我退款，再发送短信，内容：ORD-001 已经退款，手机号：18812345678",
    "approve",
    "ORD-003 显示器屏幕坏了，需要退款",
    "approve",
    "1",
    "ORD-002、ORD-004 由于产品质量问题，请退款",
    "退货政策是什么",
    "q",
  ],
  en: [
    "Look up order ORD-001",
    "The earphones of this order are defective, please refund them, then send a text message, content: ORD-001 has been refunded, phone: 18812345678",
    "approve",
    "ORD-003 the monitor's screen is broken, I need a refund",
    "approve",
    "1",
    "ORD-002 and ORD-004 have quality problems, please refund",
    "What is the return policy?",
    "q",
  ],
};
const CALLER = "user_zhangsan(张三)";
const THREE = [
  { order_id: "ORD-001", amount: 29_900, caller_id: CALLER },
  { order_id: "ORD-002", amount: 50_000, caller_id: CALLER },
  { order_id: "ORD-003", amount: 249_900, caller_id: CALLER },
];
const WORDS = {
  zh: {
    order: "订单 ORD-001：无线耳机，已签收，299.00 元",
    approvals: ["为订单 ORD-001 退款需要人工审批", "为订单 ORD-003 退款需要人工审批"],
    small: "您好，订单 ORD-001 的退款已受理成功，退款金额 299.00 元，款项将在 3 个工作日内原路退回",
    confirm: ["大额退款：确认为订单 ORD-003（4K 显示器）退款 2499.00 元吗？", "1) 确认退款", "2) 取消退款"],
    confirmed: "[订单服务 信息] 用户已确认大额退款：订单 ORD-003，2499.00 元",
    large: "您好，订单 ORD-003 的退款已受理成功，退款金额 2499.00 元",
    batch: [
      "[订单服务 信息] 批量退款开始，共 2 个订单",
      "[订单服务 信息] ORD-002 退款成功，500.00 元",
      "1/2 ORD-002",
      "[订单服务 警告] ORD-004 跳过：订单 ORD-004 当前为「配送中」",
      "2/2 ORD-004",
      "[订单服务 信息] 批量退款完成：1/2 成功",
      "2 个订单中成功 1 个，共退款 500.00 元",
    ],
    sms: "手机号校验通过，短信已发送至 18812345678：「ORD-001 已经退款」",
    smsContent: "ORD-001 已经退款",
    policy: "签收后 7 天内",
    already: /订单 (ORD-00\d) 已经退款/g,
  },
  en: {
    order: "Order ORD-001: wireless earphones, delivered, 299.00 CNY",
    approvals: [
      "A refund of order ORD-001 needs a person's approval",
      "A refund of order ORD-003 needs a person's approval",
    ],
    small:
      "Hello, the refund of order ORD-001 has been accepted. 299.00 CNY will be returned the way you paid within 3 working days",
    confirm: [
      "Large refund: refund 2499.00 CNY for order ORD-003 (4K monitor)?",
      "1) Confirm the refund",
      "2) Do not refund",
    ],
    confirmed: "[order service info] The user confirmed the large refund: order ORD-003, 2499.00 CNY",
    large: "Hello, the refund of order ORD-003 has been accepted. 2499.00 CNY",
    batch: [
      "[order service info] Batch refund started with 2 orders",
      "[order service info] ORD-002 refunded, 500.00 CNY",
      "1/2 ORD-002",
      "[order service warning] ORD-004 skipped: Order ORD-004 is in delivery",
      "2/2 ORD-004",
      "[order service info] Batch refund finished: 1/2 successful",
      "1 of 2 orders successful, 500.00 CNY",
    ],
    sms: 'the message was sent to 18812345678: "ORD-001 has been refunded"',
    smsContent: "ORD-001 has been refunded",
    policy: "within 7 days of delivery",
    already: /Order (ORD-00\d) has already been refunded/g,
  },
};

/** Every text is there, one after the other. */
function expectInOrder(text: string, parts: readonly string[]): void {
  let at = 0;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    expect(found, `"${part}" after character ${at} of:\n${text}`).toBeGreaterThanOrEqual(0);
    at = found + part.length;
  }
}

/** `server/tool` of each audit line: time, user, tool, arguments with the caller. */
function auditedCalls(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const call =
      /^ {2}(?:审计|audit) \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] 张三 (\S+) \{.*"caller_id":"user_zhangsan\(张三\)"\} (?:ok|error)$/;
    return call.exec(line)?.[1] ?? [];
  });
}
const expectThree = (data: string): void =>
  expect(refundRows(data)).toEqual(THREE.map((row) => expect.objectContaining(row)));

/** `printf … | npm run chat -- --data …`, on the usual ports or free ones. */
async function asTheIssueSays(data: string): Promise<string> {
  const chat = new Program(["npm", "run", "chat", "--", "--data", data]).say(...SCRIPTED.zh).hangUp();
  const { code, stdout } = await chat.ended;
  expect(code).toBe(0);
  return stdout;
}

describe.each(["zh", "en"] as const)("the scripted conversation (%s)", (lang) => {
  const words = WORDS[lang];
  const args = ["--lang", lang];

  it("looks up, refunds with an approval, refunds with a second confirmation, refunds a batch and sends a message", async () => {
    const data = dataDirectory();
    const text = lang === "zh" ? await asTheIssueSays(data) : await talk(data, SCRIPTED.en, { args });
    expectInOrder(text, [
      words.order,
      words.approvals[0] ?? "",
      words.small,
      words.approvals[1] ?? "",
      ...words.confirm,
      words.confirmed,
      words.large,
      ...words.batch,
      "validate_phone",
      words.sms,
    ]);
    expect(auditedCalls(text)).toEqual([
      "order/query_order",
      "order/process_refund",
      "order/process_refund",
      "order/batch_refund",
      "notification/send_sms",
    ]);
    expectThree(data);
    const message = { phone: "18812345678", content: words.smsContent, status: "sent", caller_id: CALLER };
    expect(outbox(data)).toEqual([message]);
    expect(processesOn(data)).toEqual([]);

    if (lang === "en") return; // once is enough
    const again = await talk(data, SCRIPTED[lang], { args: [...args, "--all", "--thread", "second"] });
    const refused = new Set([...again.matchAll(words.already)].map(([, order]) => order));
    expect([...refused].sort()).toEqual(["ORD-001", "ORD-002", "ORD-003"]);
    expect(again).not.toContain(words.confirm[0]); // what cannot be refunded is not confirmed either
    expectThree(data);
  });

  it("does two wishes of one message, a batch without the word batch, and answers from the policy", async () => {
    const data = dataDirectory();
    const text = await talk(data, FREE[lang], { args: [...args, "--all"] });
    expectInOrder(text, [
      words.order,
      words.approvals[0] ?? "",
      words.small,
      words.sms,
      words.approvals[1] ?? "",
      ...words.confirm,
      words.large,
      ...words.batch,
      words.policy,
    ]);
    expect(auditedCalls(text)).toEqual([
      "order/query_order",
      "order/process_refund",
      "notification/send_sms",
      "order/process_refund",
      "order/batch_refund",
    ]);
    expectThree(data);
    expect(outbox(data)).toMatchObject([{ content: words.smsContent, status: "sent" }]);
  });
});
