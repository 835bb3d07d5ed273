import { describe, expect, it } from "vitest";
import { dataDirectory, ENTRY, openChat, Program, processesOn, refunds, serverProcess, until } from "./desk.ts";
import { addOrders, quickRefunds, slowRefunds } from "./desk-database.ts";

const SMALL = "ORD-001 耳机坏了，请退款";

/** A server of its own, as somebody would run it elsewhere. */
function serve(data: string, name: "order" | "notification", port = 0): Program {
  return new Program([process.execPath, ENTRY, "serve", name, "--port", String(port), "--data", data]);
}

async function addressOf(server: Program): Promise<string> {
  const line = await server.sees(/http:\S+\/mcp\n/);
  return line.slice(line.indexOf("http")).trim();
}

describe("a server that is down at the start", () => {
  it("is named, the rest works, and it is taken in as soon as it is up", async () => {
    const data = dataDirectory();
    const notification = await addressOf(serve(data, "notification"));
    // a port that was just free, for a server that comes later
    const first = serve(data, "order");
    const order = await addressOf(first);
    await first.kill("SIGTERM").ended;

    const chat = openChat(data, { args: ["--order-url", order, "--notification-url", notification] });
    await chat.sees("注意：订单服务连不上");
    await chat.sees("你> ");
    chat.say("退货政策是什么", "查询订单ORD-001", SMALL);
    await chat.sees("1. 无理由退货");
    await chat.sees("订单服务现在连不上，请稍后再试。");
    await chat.sees("订单服务现在连不上，请稍后再试。");

    await addressOf(serve(data, "order", Number(new URL(order).port)));
    await until(async () => {
      chat.say("查询订单ORD-001");
      return (await chat.sees(/助手：.*\n/)).includes("299.00");
    }, "the order server to be taken in");
    chat.say(SMALL, "approve", "quit");
    await chat.sees("退款已受理成功");
    expect((await chat.ended).code).toBe(0);
    expect(chat.stdout).toContain("订单服务已恢复。");
    expect(refunds(data)).toEqual(["ORD-001"]);
  });

  it("may be the notification server: no policy and no template then, but refunds work", async () => {
    const data = dataDirectory();
    const chat = openChat(data, { args: ["--all", "--notification-url", "http://127.0.0.1:1/mcp"] });
    chat.say("退货政策是什么", SMALL, "approve", "给 18812345678 发短信，内容：好", "/status", "quit");
    const { code, stdout } = await chat.ended;
    expect(code).toBe(0);
    expect(stdout).toContain("注意：通知服务连不上");
    expect(stdout).toContain("现在读不到退货政策");
    expect(stdout).toContain("助手：退款成功：订单 ORD-001（无线耳机），299.00 元。");
    expect(stdout).toContain("通知服务现在连不上");
    expect(stdout).toMatch(/通知服务: down/);
    expect(refunds(data)).toEqual(["ORD-001"]);
  });

  it("may be both", async () => {
    const data = dataDirectory();
    const nowhere = "http://127.0.0.1:1/mcp";
    const chat = openChat(data, { args: ["--order-url", nowhere, "--notification-url", nowhere] });
    const { code, stdout } = await chat.say("查询订单ORD-001", "你好", "/tools", "quit").ended;
    expect(code).toBe(0);
    expect(stdout).toContain("订单服务现在连不上");
    expect(stdout).toContain("我是离线替身");
    expect(stdout).toContain("validate_phone");
  });
});

async function untilRestarted(data: string, killed: number): Promise<void> {
  await until(
    () => processesOn(data).some(({ command, pid }) => command.includes("serve order") && pid !== killed),
    "a new server process",
  );
}

describe("a server that dies", () => {
  it("while the chat is idle is reported and started again on the same port, however often; the chat goes on", async () => {
    const data = dataDirectory();
    const chat = openChat(data, { args: [] });
    chat.say("查询订单ORD-001");
    await chat.sees("299.00");
    await chat.sees("你> ");
    let killed = serverProcess(data, "order");
    process.kill(killed, "SIGKILL");
    await chat.sees("订单服务意外退出，正在重新启动……");
    await chat.sees("你> "); // the prompt is back although nobody typed
    await untilRestarted(data, killed);
    killed = serverProcess(data, "order"); // this one dies while it starts
    process.kill(killed, "SIGKILL");
    await untilRestarted(data, killed);
    await until(async () => {
      chat.say("查询订单ORD-003");
      return (await chat.sees(/助手：.*\n/)).includes("2499.00");
    }, "the order server to answer again");
    chat.say(SMALL, "approve", "quit");
    await chat.sees("退款已受理成功");
    expect((await chat.ended).code).toBe(0);
    expect(processesOn(data)).toEqual([]);
    expect(refunds(data)).toEqual(["ORD-001"]);
  });

  it("between the approval and the confirmation loses neither", async () => {
    const data = dataDirectory();
    const chat = openChat(data, { args: [] }).say("ORD-003 屏幕坏了，请退款", "approve");
    await chat.sees("回答> ");
    const before = serverProcess(data, "order");
    process.kill(before, "SIGKILL");
    await chat.sees("意外退出");
    await untilRestarted(data, before);
    chat.say("1", "quit");
    await chat.ended;
    // answered before the new process listened: the refund was not made, and the desk said so
    expect(chat.stdout).toMatch(/退款已受理成功|退款没有完成/);
    expect(refunds(data)).toEqual(chat.stdout.includes("退款已受理成功") ? ["ORD-003"] : []);
  });

  it("in the middle of a batch is reported, and the batch said again refunds the rest, nothing twice", async () => {
    const data = dataDirectory();
    const chat = openChat(data, { args: [] });
    await chat.sees("你> ");
    const ids = Array.from({ length: 60 }, (_, i) => `ORD-${100 + i}`);
    addOrders(data, ids, 100);
    slowRefunds(data);

    const batch = `${ids.join("、")} 由于质量问题，请批量退款`;
    chat.say(batch);
    await chat.sees("2/60");
    process.kill(serverProcess(data, "order"), "SIGKILL");
    await chat.sees("操作没有成功");
    await chat.sees("你> ");
    quickRefunds(data);
    const done = refunds(data).length;
    expect(done).toBeGreaterThanOrEqual(2);
    expect(done).toBeLessThan(60);

    await until(async () => {
      chat.say(batch);
      return (await chat.sees(/助手：.*\n/)).includes(`60 个订单中成功 ${60 - done} 个`);
    }, "the rest to be refunded");
    expect(refunds(data).sort()).toEqual(ids);
    chat.say("quit");
    expect((await chat.ended).code).toBe(0);
  });
});
