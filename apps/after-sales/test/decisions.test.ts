import { describe, expect, it } from "vitest";
import { refundRows, refunds, sharedChat } from "./desk.ts";

const SMALL = "ORD-001 耳机坏了，请退款";
const LARGE = "ORD-003 屏幕坏了，请退款";

const desk = sharedChat();

describe("an approval", () => {
  it("leaves the order alone when it is rejected, with or without a reason", async () => {
    const text = await desk.told(SMALL, "reject 请先寄回商品", SMALL, "拒绝");
    expect(text).toContain("退款没有通过审批：请先寄回商品。");
    expect(text).toContain("退款没有通过审批：审批人拒绝了这次操作。");
    expect(text).not.toContain("调用 order/process_refund");
    expect(text).not.toContain("The person"); // words meant for a model
    expect(refunds(desk.data)).toEqual([]);
  });

  it("lets the reviewer answer instead of the tool", async () => {
    const text = await desk.told(SMALL, "respond 客服会在一小时内给您打电话");
    expect(text).toMatch(/助手：.*客服会在一小时内给您打电话/);
    expect(text).toContain("本轮没有调用远程工具");
    expect(refunds(desk.data)).toEqual([]);
  });

  it("refunds what an inline edit says, with its reason", async () => {
    const text = await desk.told(SMALL, 'edit {"order_id": "ORD-002", "reason": "审批人更正"}', "1");
    expect(text).toContain("您好，订单 ORD-002 的退款已受理成功，退款金额 500.00 元");
    expect(refundRows(desk.data)).toMatchObject([{ order_id: "ORD-002", amount: 50_000, reason: "审批人更正" }]);
  });

  it("can be edited argument by argument, where Enter keeps the old value", async () => {
    const text = await desk.told(LARGE, "edit", "ORD-001", "");
    expect(text).toContain("order_id（当前 ORD-003，回车不变）> ORD-001");
    expect(text).not.toContain("caller_id（"); // the system's argument is nobody's to edit
    expect(refundRows(desk.data)).toMatchObject([{ order_id: "ORD-001", reason: "屏幕坏了" }]);
  });

  it("is asked again when an edit does not fit the schema, and nothing runs meanwhile", async () => {
    const text = await desk.told(SMALL, 'edit {"order_id": 7}', "edit {broken", "edit {]}", "reject");
    expect(text).toMatch(/答案不符合要求：.*order_id/);
    expect(text.match(/参数不正确：JSON/g)).toHaveLength(2);
    expect(text).not.toContain(".，");
    expect(text.match(/需要审批 1\/1/g)).toHaveLength(2);
    expect(refunds(desk.data)).toEqual([]);
  });

  it("cannot be edited into a call under somebody else's name", async () => {
    await desk.told(SMALL, 'edit {"caller_id": "root(管理员)"}');
    expect(refundRows(desk.data)).toMatchObject([{ order_id: "ORD-001", caller_id: "user_zhangsan(张三)" }]);
  });

  it("asks again after words that are no decision, empty lines and spaces", async () => {
    const text = await desk.told(SMALL, "maybe", "", "   ", "ＡＰＰＲＯＶＥ", "approve");
    expect(text).toContain("没有「maybe」这个决定，请输入：approve / edit / reject / respond");
    expect(text.match(/没有「/g)).toHaveLength(4);
    expect(text.match(/需要审批/g)).toHaveLength(1);
    expect(refunds(desk.data)).toEqual(["ORD-001"]);
  });

  it("refuses a line of a megabyte and asks again", async () => {
    const text = await desk.told(SMALL, `reject ${"长".repeat(400_000)}`, "approve");
    expect(text).toContain("这一行有 400007 个字符，超过上限 4000");
    expect(text.length).toBeLessThan(5_000);
    expect(refunds(desk.data)).toEqual(["ORD-001"]);
  });
});

describe("the second confirmation of a large refund", () => {
  it("can be declined, closed or answered with cancel: three answers, and nothing changes", async () => {
    const text = await desk.told(LARGE, "approve", "decline", LARGE, "approve", "cancel", LARGE, "approve", "2");
    const answers = [...text.matchAll(/退款没有完成：(.*)/g)].map(([, answer]) => answer);
    expect(answers).toEqual([
      "用户拒绝确认，订单 ORD-003 没有任何改动。",
      "用户没有作答就关闭了确认，订单 ORD-003 没有任何改动。",
      "用户选择了取消退款，订单 ORD-003 没有任何改动。",
    ]);
    expect(refunds(desk.data)).toEqual([]);
  });

  it("takes a number or the choice's words, and asks again after anything else", async () => {
    const text = await desk.told(LARGE, "approve", "7", "", "好的", "confirm");
    expect(text.match(/请输入 1 到 2 的编号/g)).toHaveLength(3);
    expect(refunds(desk.data)).toEqual(["ORD-003"]);
  });
});

describe("refusals", () => {
  it("tells that an order does not exist, and does not try again", async () => {
    const text = await desk.told("查询订单ORD-999", "ORD-998 坏了，请退款", "approve");
    expect(text).toContain("助手：订单 ORD-999 不存在，请核对订单号。");
    expect(text).toContain("退款没有完成：订单 ORD-998 不存在");
    expect(text.match(/审计 \[.*query_order.* error/g)).toHaveLength(1);
    expect(text.match(/审计 \[.*process_refund.* error/g)).toHaveLength(1);
  });

  it("does not refund an order that is still in delivery", async () => {
    const text = await desk.told("ORD-004 不想要了，请退款", "approve");
    expect(text).toContain("订单 ORD-004 当前为「配送中」，只有已签收的订单可以退款");
    expect(refunds(desk.data)).toEqual([]);
  });

  it("refunds an order once", async () => {
    const text = await desk.told(SMALL, "approve", SMALL, "approve");
    expect(text.match(/退款已受理成功/g)).toHaveLength(1);
    expect(text).toContain("退款没有完成：订单 ORD-001 已经退款（299.00 元），不能重复退款");
    expect(refunds(desk.data)).toEqual(["ORD-001"]);
  });
});
