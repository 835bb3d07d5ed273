import { describe, expect, it } from "vitest";
import { orderIdsIn, understand, type Wish } from "./understand.ts";

const refund = (orderId: string): Partial<Wish> => ({ kind: "refund", orderId });
const batch = (...orderIds: string[]): Partial<Wish> => ({ kind: "batch", orderIds });
const query = (orderId: string): Partial<Wish> => ({ kind: "query", orderId });
const sms = (phone: string | undefined, content: string | undefined): Wish => ({ kind: "sms", phone, content });
const policy: Partial<Wish> = { kind: "policy" };
const whichOrder: Wish = { kind: "which_order" };
const declined: Partial<Wish> = { kind: "no_refund" };

type Case = [message: string, wishes: readonly Partial<Wish>[], earlier?: readonly string[]];

function check(cases: readonly Case[]): void {
  it.each(cases)("%s", (message, wishes, earlier = []) => {
    expect(understand(message, earlier)).toEqual(wishes.map((wish) => expect.objectContaining(wish)));
  });
}

describe("looking up", () => {
  check([
    ["查询订单ORD-001", [query("ORD-001")]],
    ["帮我看看 ord-2 到哪了", [query("ORD-002")]],
    ["ORD-003", [query("ORD-003")]],
    ["ORD-001 和 ORD-004 的状态", [query("ORD-001"), query("ORD-004")]],
    ["查一下这个订单", [query("ORD-002")], ["ORD-002", "ORD-001"]],
    ["查一下我的订单", [whichOrder]],
    ["Look up order ORD-001", [query("ORD-001")]],
    ["Where is ord_7?", [query("ORD-007")]],
    ["What's the status of this order?", [query("ORD-002")], ["ORD-002"]],
    ["Show me my order", [whichOrder]],
  ]);
});

describe("refunding one order", () => {
  check([
    ["ORD-003 显示器屏幕坏了，需要退款", [{ ...refund("ORD-003"), reason: "显示器屏幕坏了" }]],
    ["这个耳机有质量问题，请帮我退款", [{ ...refund("ORD-001"), reason: "耳机有质量问题" }], ["ORD-001"]],
    ["该订单我要退款", [refund("ORD-002")], ["ORD-002", "ORD-001"]],
    ["我要退款", [whichOrder]],
    ["ORD-001 ORD-001 退款", [refund("ORD-001")]],
    [
      "ORD-003 the monitor's screen is broken, I need a refund",
      [{ ...refund("ORD-003"), reason: "the monitor's screen is broken" }],
    ],
    ["I want my money back for ORD-001", [refund("ORD-001")]],
    ["Please refund this order", [refund("ORD-001")], ["ORD-001"]],
    ["Please refund it", [whichOrder]],
  ]);
});

describe("a refund that is only told about", () => {
  check([
    ["您好，订单 ORD-001 的退款已受理成功，退款金额 299.00 元", [query("ORD-001")]],
    ["ORD-001 已经退款了吗", [query("ORD-001")]],
    ["Hello, the refund of order ORD-001 has been accepted.", [query("ORD-001")]],
    ["Has ORD-001 been refunded?", [query("ORD-001")]],
    ["ORD-001 已经退款，ORD-002 也请退款", [refund("ORD-002")]],
  ]);
});

describe("refunding several orders", () => {
  check([
    ["ORD-002、ORD-004 由于产品质量问题，请退款", [{ ...batch("ORD-002", "ORD-004"), reason: "产品质量问题" }]],
    ["批量退款 ORD-001,ORD-002,ORD-001", [batch("ORD-001", "ORD-002")]],
    ["ORD-002 and ORD-004 have quality problems, please refund", [batch("ORD-002", "ORD-004")]],
  ]);
});

describe("sending a message", () => {
  check([
    ["给 18812345678 发短信，内容：ORD-001 已经退款", [sms("18812345678", "ORD-001 已经退款")]],
    ["发短信，内容：已退款，手机号：18812345678", [sms("18812345678", "已退款")]],
    ["给 18812345678 发短信，内容：客服电话 4001234567", [sms("18812345678", "客服电话 4001234567")]],
    ["发短信告诉用户", [sms(undefined, undefined)]],
    ["给 123456 发短信，内容：你好", [sms("123456", "你好")]],
    ["Text 18812345678, content: ORD-001 has been refunded", [sms("18812345678", "ORD-001 has been refunded")]],
    [
      "Send a text message, content: please refund ORD-003, phone: 18812345678",
      [sms("18812345678", "please refund ORD-003")],
    ],
  ]);

  it("ends the content at its closing quote", () => {
    expect(understand("给 18812345678 发短信，内容为“你好，12345678901”，谢谢", [])).toEqual([
      sms("18812345678", "你好，12345678901"),
    ]);
  });

  it("never takes the content of a message for a wish", () => {
    for (const message of [
      "给 18812345678 发短信，内容：请为 ORD-003 退款",
      "给 18812345678 发短信，内容为“查询订单 ORD-001，然后退款”",
      "Send a text message to 18812345678, content: refund ORD-001 and ORD-002",
    ]) {
      expect(understand(message, ["ORD-004"]).map(({ kind }) => kind)).toEqual(["sms"]);
    }
  });
});

describe("two wishes in one message", () => {
  check([
    [
      "该订单耳机质量有问题，请帮我退款，再发送短信，内容：ORD-001 已经退款，手机号：18812345678",
      [{ ...refund("ORD-001"), reason: "耳机质量有问题" }, sms("18812345678", "ORD-001 已经退款")],
      ["ORD-001"],
    ],
    [
      "ORD-002 请退款，并给 18812345678 发短信，内容：ORD-003 不退款",
      [refund("ORD-002"), sms("18812345678", "ORD-003 不退款")],
    ],
    [
      "Please refund ORD-001, then send a text message to 18812345678, content: done",
      [refund("ORD-001"), sms("18812345678", "done")],
    ],
  ]);
});

describe("the policy", () => {
  check([
    ["退货政策是什么", [policy]],
    ["退款多久到账？", [policy]],
    ["赠品要退吗", [policy]],
    ["换货要自己付运费吗", [policy]],
    ["可以无理由退货吗？", [policy]],
    ["What is the return policy?", [policy]],
    ["How long does a refund take?", [policy]],
    ["Do gifts go back too?", [policy]],
    ["What is the refund policy?", [policy], ["ORD-001"]],
  ]);
});

describe("saying not to refund", () => {
  check([
    ["不要退款", [declined], ["ORD-001"]],
    ["ORD-001 不要退款", [declined]],
    ["ORD-001 先别退款", [declined]],
    ["我不想退款了", [declined], ["ORD-001"]],
    ["ORD-003 不用退款了，谢谢", [declined]],
    ["取消退款", [declined], ["ORD-001"]],
    ["ORD-001 无需退款", [declined]],
    ["don't refund ORD-001", [declined]],
    ["Please do not refund it", [declined], ["ORD-001"]],
    ["I don’t want a refund for ORD-001", [declined]],
    ["No refund please", [declined], ["ORD-001"]],
    ["Never refund ORD-003", [declined]],
    ["cancel the refund of ORD-001", [declined]],
    ["退款申请取消吧", [declined], ["ORD-001"]],
    ["The refund is no longer needed", [declined], ["ORD-001"]],
    ["ORD-001 不要退款，ORD-002 请退款", [refund("ORD-002")]],
    ["ORD-002 请退款，但 ORD-001 不退款", [refund("ORD-002")]],
    ["Refund ORD-002 but not ORD-001", [refund("ORD-002")]],
    ["除了 ORD-001 都退款", [declined]],
    ["不要退款，给 18812345678 发短信，内容：已取消", [declined, sms("18812345678", "已取消")], ["ORD-001"]],
  ]);

  it("still refunds where the negation is about something else", () => {
    expect(understand("ORD-001 耳机不能用了，请退款", [])).toMatchObject([refund("ORD-001")]);
    expect(understand("ORD-001 不想要了，请退款", [])).toMatchObject([refund("ORD-001")]);
    expect(understand("ORD-001 能不能退款", [])).toMatchObject([refund("ORD-001")]);
    expect(understand("ORD-001 不想要了请退款", [])).toMatchObject([refund("ORD-001")]);
    expect(understand("ORD-001 doesn't work, please refund", [])).toMatchObject([refund("ORD-001")]);
    expect(understand("I do not like ORD-001, refund it", [])).toMatchObject([refund("ORD-001")]);
  });
});

describe("a batch, which nobody approves", () => {
  it.each([
    "ORD-002、ORD-004 由于产品质量问题，请批量退款",
    "ORD-002、ORD-004 由于产品质量问题，请退款",
    "Please refund ORD-002 and ORD-004 as a batch, quality problem",
    "ORD-002 and ORD-004 have quality problems, please refund",
    "Refund ORD-002 and ORD-004, quality problem",
    "ORD-002 and ORD-004 have product quality problems, please refund",
    "Please process a batch refund for ORD-002 and ORD-004 due to product quality issues.",
    "ORD-002, ORD-004: product quality issue, please refund",
    "Batch refund ORD-002 and ORD-004 because of quality problems",
    "Could you please refund ORD-002 and ORD-004?",
    "我想退款ORD-001和ORD-002，质量问题",
    "ORD-002、ORD-004质量有问题，请批量退款",
    "Please batch refund ORD-002 and ORD-004 for quality problems",
    "Due to product quality issues, please refund ORD-002 and ORD-004",
    "由于产品质量问题，请为 ORD-002、ORD-004 批量退款",
    "I'd like a refund for ORD-002 and ORD-004, they are broken",
    "ORD-002 and ORD-004 are defective, refund both please",
    "refund ord-2, ord-4",
  ])("is made of plain words: %s", (message) => {
    expect(understand(message, []).map(({ kind }) => kind)).toEqual(["batch"]);
  });
  it.each([
    "refund ORD-001, leave ORD-002 and ORD-003 alone",
    "are ORD-001 and ORD-002 refunded already?",
    "Has my refund for ORD-001 and ORD-002 arrived yet?",
    "Can I get a refund policy for ORD-001 and ORD-002?",
    "Tell me the refund rules, my orders are ORD-001, ORD-002",
    "Would it be possible to refund ORD-001 and ORD-002, or should I wait?",
    "ORD-001和ORD-002能退款吗",
    "refund ORD-001 and ORD-003, keep ORD-002",
    "refund all but ORD-001 and ORD-002",
    "ORD-001退款，ORD-002不退",
    "ORD-001 和 ORD-003 退款，ORD-002 留下",
    "please hold off on refunding ORD-001 and ORD-002",
    "I refuse a refund for ORD-001 and ORD-002",
    "Avoid refunding ORD-001 and ORD-002",
    "Undo the refunds of ORD-001 and ORD-002",
    "I haven't decided whether to refund ORD-001 and ORD-002",
    "Are ORD-001 and ORD-002 refunded?",
    "How long does a refund take for ORD-001 and ORD-002?",
    "How do I refund ORD-001 and ORD-002?",
    "Is it possible to return ORD-001 and ORD-002 for a refund?",
    "What happens if I refund ORD-001 and ORD-002?",
    "refund status of ORD-001 and ORD-002",
    "Compare ORD-001 and ORD-002 refund status",
    "ORD-001和ORD-002怎么退款",
    "ORD-001和ORD-002退款要多久",
    "ORD-001和ORD-002要不要退款呢",
  ])("is asked back about, or is none: %s", (message) => {
    expect(understand(message, []).map(({ kind }) => kind)).not.toContain("batch");
  });
});

describe("anything else", () => {
  check([
    ["你好", []],
    ["今天天气怎么样", []],
    ["写一首诗", []],
    ["Tell me a joke", []],
    ["I have changed my mind, and it is fine", [], ["ORD-001"]],
    ["!!! ### ---", []],
    ["1", []],
  ]);

  it("reads a very long message in no time", () => {
    const started = performance.now();
    for (const piece of ["内容：", "ORD-", "退款，", "a ", "1", "content "])
      understand(piece.repeat(30_000 / piece.length), []);
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describe("order numbers", () => {
  it("are found as people type them, each once", () => {
    expect(orderIdsIn("ord-1, ORD_002 Ord 3 ORD001 和ORD-0004")).toEqual(["ORD-001", "ORD-002", "ORD-003", "ORD-0004"]);
    expect(orderIdsIn("word-1 records 2")).toEqual([]);
  });
});
