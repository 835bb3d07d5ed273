import { processHolder } from "@tenon/agent";
import { describe, expect, it, onTestFinished } from "vitest";
import { openaiEndpoint } from "../../../packages/agent/test/openai-endpoint.ts";
import { openStores } from "../src/database/stores.ts";
import { dataDirectory, openChat, refunds, talk } from "./desk.ts";
import { DESK_URL, schemaOf } from "./desk-database.ts";

const SMALL = "ORD-001 耳机坏了，请退款";
const LARGE = "ORD-003 屏幕坏了，请退款";

describe("leaving at a question", () => {
  it.each([
    ["an approval", ["ORD-003 屏幕坏了，请退款", "quit"]],
    ["the server's own confirmation", ["ORD-003 屏幕坏了，请退款", "approve", "退出"]],
  ])("of %s by the usual words keeps it for the next start", async (_, lines) => {
    const data = dataDirectory();
    const left = await talk(data, lines);
    expect(left).toContain("这个问题会保留");
    expect(left).toContain("再见");
    expect(refunds(data)).toEqual([]);
    const back = await talk(data, [...(lines.length === 2 ? ["approve"] : []), "1", "quit"]);
    expect(back).toContain("上次有一个问题还没有回答：");
    expect(refunds(data)).toEqual(["ORD-003"]);
  });
});

describe("an open question", () => {
  it("outlives the end of the input, leaves other threads alone, and is answered by the next start", async () => {
    const data = dataDirectory();
    const first = await talk(data, [SMALL]);
    expect(first).toContain("这个问题会保留，下次启动时可以继续回答。");
    expect(refunds(data)).toEqual([]);

    const other = await talk(data, ["查询订单ORD-001"], { args: ["--all", "--thread", "other"] });
    expect(other).not.toContain("上次有一个问题");
    expect(other).toContain("299.00 元");

    const second = await talk(data, ["approve", "查询订单ORD-001", "退出", "查询订单ORD-003"]);
    expect(second).toContain("上次有一个问题还没有回答：");
    expect(second).toContain("需要审批 1/1：process_refund");
    expect(second).toContain("已于");
    expect(second).not.toContain("2499.00"); // was said after leaving
    expect(refunds(data)).toEqual(["ORD-001"]);
  });
});

describe("two questions of one message", () => {
  it("are asked one after the other; leaving at the second keeps the answer to the first", async () => {
    const calls = ["ORD-003", "ORD-002"].map((id) => {
      return { id: `call_${id}`, name: "mcp_order_process_refund", args: { order_id: id, reason: "坏了" } };
    });
    await using endpoint = await openaiEndpoint([{ calls }, { text: "两笔都退好了。" }]);
    const data = dataDirectory();
    const args = ["--all", "--model", "openai-compatible:test", "--base-url", endpoint.baseUrl];
    const left = await talk(data, ["都退款", "approve", "approve", "1", "quit"], { args });
    expect(left.match(/调用 order\/process_refund/g)).toHaveLength(2); // each call is told once, not with every answer
    expect(left).toContain("大额退款：确认为订单 ORD-003");
    expect(left).toContain("大额退款：确认为订单 ORD-002");
    expect(left.match(/这个问题会保留/g)).toHaveLength(1);
    expect(refunds(data)).toEqual(["ORD-003"]);

    const back = await talk(data, ["1", "quit"], { args });
    expect(back).not.toContain("确认为订单 ORD-003");
    expect(back).not.toContain("调用 order/process_refund");
    expect(back).toContain("助手：两笔都退好了。");
    expect(refunds(data)).toEqual(["ORD-003", "ORD-002"]);
  });
});

describe("a thread that another window works on", () => {
  it("is named, nobody is asked meanwhile, and the next message goes through", async () => {
    const data = dataDirectory();
    await talk(data, [SMALL]); // leaves a question open
    const stores = await openStores({ directory: data, url: DESK_URL, schema: schemaOf(data) }, "leases.sqlite");
    onTestFinished(() => stores.close());
    const taken = await stores.leases.acquire("thread:main", processHolder(), 60_000);
    const chat = openChat(data);
    await chat.sees("会话 main 正在另一个窗口处理中");
    const text = await chat.sees("你> ");
    expect(text).not.toContain("需要审批");
    expect(text).not.toContain("这个问题会保留");
    await stores.leases.release(taken.lease);
    chat.say("查询订单ORD-002", "approve", "quit"); // the open question first, then the message
    const { code, stdout } = await chat.ended;
    expect(code).toBe(0);
    expect(stdout.indexOf("退款已受理成功")).toBeGreaterThan(stdout.indexOf("需要审批 1/1"));
    expect(stdout.indexOf("500.00 元")).toBeGreaterThan(stdout.indexOf("退款已受理成功"));
    expect(refunds(data)).toEqual(["ORD-001"]);
  });
});

describe("two chats on the same data directory", () => {
  it("work side by side on different threads, and an order is refunded once", async () => {
    const data = dataDirectory();
    const chats = ["one", "two"].map((thread) => openChat(data, { args: ["--all", "--thread", thread] }));
    for (const chat of chats) chat.say(SMALL);
    for (const chat of chats) await chat.sees("决定> ");
    for (const chat of chats) chat.say("approve", "quit");
    const texts = (await Promise.all(chats.map((chat) => chat.ended))).map(({ stdout }) => stdout);
    expect(texts.filter((text) => text.includes("退款已受理成功"))).toHaveLength(1);
    expect(texts.filter((text) => text.includes("已经退款（299.00 元）"))).toHaveLength(1);
    expect(refunds(data)).toEqual(["ORD-001"]);
  });

  it("may show the same questions; each is answered once, even at the same moment, and the other is told so", async () => {
    const data = dataDirectory();
    const first = openChat(data).say(LARGE);
    await first.sees("决定> ");
    const second = openChat(data);
    await second.sees("上次有一个问题还没有回答：");
    await second.sees("决定> ");
    first.say("approve");
    await first.sees("回答> ");
    second.say("reject");
    await second.sees("这个问题已在别处得到回答，你的回答没有使用。");
    await second.sees("回答> "); // now both see the confirmation
    for (const chat of [first, second]) chat.say("1", "quit");
    const ended = await Promise.all([first.ended, second.ended]);
    expect(ended.map(({ code }) => code)).toEqual([0, 0]);
    const told = ended.map(({ stdout }) => stdout.match(/这个问题已在别处得到回答/g)?.length ?? 0);
    expect(told[0] === 1 || told[1] === 2).toBe(true); // who came second at the confirmation
    expect(refunds(data)).toEqual(["ORD-003"]);
  });
});
