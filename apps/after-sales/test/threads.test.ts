import { describe, expect, it } from "vitest";
import { dataDirectory, openChat, refunds, talk } from "./desk.ts";

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
