import { describe, expect, it } from "vitest";
import { dataDirectory, openChat, outbox, type Program, processesOn, refunds, talk, until } from "./desk.ts";

const LARGE = "ORD-003 屏幕坏了，请退款";
const OWN_SERVERS = { args: [] };

describe.each(["SIGINT", "SIGKILL"] as const)("%s", (signal) => {
  it("at the approval and again at the server's own confirmation loses neither; each is asked again, and answered once", async () => {
    const data = dataDirectory();
    const first = openChat(data, OWN_SERVERS).say(LARGE);
    await first.sees("决定> ");
    expect(processesOn(data)).toHaveLength(3); // the chat and two servers
    await expectToLeave(first, signal, data);
    expect(refunds(data)).toEqual([]);

    const second = openChat(data, OWN_SERVERS);
    await second.sees("上次有一个问题还没有回答：");
    await second.sees("决定> ");
    second.say("approve");
    await second.sees("回答> ");
    await expectToLeave(second, signal, data);
    expect(refunds(data)).toEqual([]);

    const third = await talk(data, ["1", "quit"]);
    expect(third).not.toContain("需要审批"); // that was answered
    expect(third).toContain("大额退款：确认为订单 ORD-003");
    expect(third.match(/退款已受理成功/g)).toHaveLength(1);
    expect(third.match(/审计 \[.*process_refund/g)).toHaveLength(1);
    expect(refunds(data)).toEqual(["ORD-003"]);
  });
});

async function expectToLeave(chat: Program, signal: NodeJS.Signals, data: string): Promise<void> {
  const { code, stdout, stderr } = await chat.kill(signal).ended;
  expect(stderr).toBe("");
  if (signal === "SIGKILL") return until(() => processesOn(data).length === 0, "the servers to notice");
  expect(code).toBe(0);
  expect(stdout).toContain("再见。会话已保存");
  expect(processesOn(data)).toEqual([]);
}

describe("stopping", () => {
  it("with SIGTERM while the desk waits for a message is as clean", async () => {
    const data = dataDirectory();
    const chat = openChat(data, OWN_SERVERS);
    await chat.sees("你> ");
    await expectToLeave(chat, "SIGTERM", data);
  });

  it("during the start leaves no process behind", async () => {
    const data = dataDirectory();
    const chat = openChat(data, OWN_SERVERS);
    await until(() => processesOn(data).length > 1, "a server process to appear");
    await chat.kill("SIGINT").ended;
    await until(() => processesOn(data).length === 0, "the servers to end");
  });
});

describe("kill -9 of the chat", () => {
  it("at every question of a whole conversation changes nothing about what comes of it", async () => {
    const data = dataDirectory();
    const killed = async (chat: Program): Promise<Program> => {
      await chat.kill("SIGKILL").ended;
      await until(() => processesOn(data).length === 0, "the servers to notice");
      return openChat(data, OWN_SERVERS);
    };
    const first = openChat(data, OWN_SERVERS).say("查询订单ORD-001", "这个耳机有质量问题，请帮我退款");
    await first.sees("决定> ");

    const second = await killed(first);
    await second.sees("决定> ");
    second.say("approve");
    await second.sees("订单 ORD-001 的退款已受理成功");
    second.say("ORD-003 显示器屏幕坏了，需要退款");
    await second.sees("决定> ");

    const third = await killed(second);
    await third.sees("决定> ");
    third.say("approve");
    await third.sees("回答> ");

    const fourth = await killed(third);
    await fourth.sees("回答> ");
    fourth.say("1");
    await fourth.sees("订单 ORD-003 的退款已受理成功");
    fourth.say(
      "ORD-002、ORD-004 由于产品质量问题，请批量退款",
      "给 18812345678 发短信，内容：ORD-001 已经退款",
      "quit",
    );
    const { code, stdout } = await fourth.ended;
    expect(code).toBe(0);
    expect(stdout).toContain("2 个订单中成功 1 个，共退款 500.00 元");
    expect(refunds(data).toSorted()).toEqual(["ORD-001", "ORD-002", "ORD-003"]);
    expect(outbox(data)).toHaveLength(1);
  });

  it("right after the confirmation refunds once, whether the refund was made before or is made now", async () => {
    const data = dataDirectory();
    const chat = openChat(data, OWN_SERVERS).say(LARGE, "approve");
    await chat.sees("回答> ");
    chat.say("1");
    await chat.sees("1\n");
    await chat.kill("SIGKILL").ended;
    await until(() => processesOn(data).length === 0, "the servers to notice");
    const next = await talk(data, ["1", "查询订单ORD-003"]);
    expect(next).toContain("已于");
    expect(refunds(data)).toEqual(["ORD-003"]);
  });
});

describe("the reader of the output", () => {
  it("may go away, as `| head` does", async () => {
    const data = dataDirectory();
    const chat = openChat(data, OWN_SERVERS);
    await chat.sees("你> ");
    chat.stopReading().say("查询订单ORD-001", "查询订单ORD-002", "查询订单ORD-003");
    const { code, signal, stderr } = await chat.ended;
    expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: "" });
    await until(() => processesOn(data).length === 0, "the servers to end");
  });
});
