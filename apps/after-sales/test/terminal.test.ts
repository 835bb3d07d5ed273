import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { dataDirectory, ENTRY, Program, processesOn, refunds, until } from "./desk.ts";
import { placeVariables } from "./desk-database.ts";

// a pseudo-terminal between the pipes of the test and the program
const script = spawnSync("script", ["-qec", "true", "/dev/null"]).status === 0;
if (!script) console.log("skipped: a terminal needs `script` of util-linux, which does not work here");

const CTRL_C = "\u0003";

function onTerminal(command: "chat" | "start", data: string, ...args: string[]): Program {
  const words = [
    process.execPath,
    ENTRY,
    command,
    "--data",
    data,
    "--order-port",
    "0",
    "--notification-port",
    "0",
    ...args,
  ];
  return new Program(["script", "-qec", words.join(" "), "/dev/null"], {
    TERM: "xterm",
    SHELL: "/bin/sh",
    ...placeVariables(data),
  });
}

describe.skipIf(!script)("a terminal", () => {
  it("shows a prompt, keeps a question that Ctrl-C leaves open, and asks it again, from npm start too", async () => {
    const data = dataDirectory();
    const chat = onTerminal("chat", data);
    await chat.sees("你> ");
    expect(processesOn(data).length).toBeGreaterThanOrEqual(3);
    chat.type("ORD-001 坏了，请退款\r");
    await chat.sees("决定> ");
    chat.type(CTRL_C);
    const { code, stdout } = await chat.ended;
    expect(code).toBe(0);
    expect(stdout).toContain("再见。会话已保存");
    await until(() => processesOn(data).length === 0, "every process to end");

    const next = onTerminal("start", data, "--all");
    await next.sees("上次有一个问题还没有回答");
    await next.sees("决定> ");
    next.type("approve\r");
    await next.sees("退款已受理成功");
    await next.sees("你> ");
    next.type("查询订单ORD-001\r");
    await next.sees("299.00 元");
    await next.sees("你> ");
    next.type(`half a line${CTRL_C}`);
    expect((await next.ended).code).toBe(0);
    expect(refunds(data)).toEqual(["ORD-001"]);
  });
});
