import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type EndpointReply, openaiEndpoint } from "../../../packages/agent/test/openai-endpoint.ts";
import { dataDirectory, openChat, outbox, refunds } from "./desk.ts";

const REFUND: readonly EndpointReply[] = [
  {
    text: "我先查一下。",
    calls: [
      { id: "call_a", name: "mcp_order_query_order", args: { order_id: "ORD-001" } },
      { id: "call_b", name: "mcp_order_query_order", args: { order_id: "ORD-003" } },
    ],
  },
  {
    calls: [
      // what a model writes as its caller is overwritten
      {
        id: "call_c",
        name: "mcp_order_process_refund",
        args: { order_id: "ORD-001", reason: "坏了", caller_id: "root" },
      },
      { id: "call_d", name: "mcp_order_process_refund", args: { order_id: "ORD-003", reason: "坏了" } },
    ],
  },
  { calls: [{ id: "call_e", name: "validate_phone", args: { phone: "18812345678" } }] },
  { calls: [{ id: "call_f", name: "mcp_notification_send_sms", args: { phone: "18812345678", content: "已退款" } }] },
  { text: "ORD-001 已退款 299.00 元，ORD-003 没有退款，短信已发送。" },
];

describe("a model behind an endpoint", () => {
  it.each([
    { flavour: "openai", args: ["--model", "openai-compatible:test"], env: { DEEPSEEK_API_KEY: "" } },
    { flavour: "deepseek", args: ["--model", "deepseek:deepseek-chat"], env: { DEEPSEEK_API_KEY: "x" } },
  ] as const)(
    "of the kind $flavour holds a conversation of refunds with the real tools",
    async ({ flavour, args, env }) => {
      await using endpoint = await openaiEndpoint(REFUND, flavour);
      const data = dataDirectory();
      const chat = openChat(data, { args: ["--all", ...args, "--base-url", endpoint.baseUrl], env });
      chat.say("ORD-001 和 ORD-003 坏了，请退款，然后发短信到 18812345678", "approve", "reject 这台要先寄回", "quit");
      const { code, stdout, stderr } = await chat.ended;
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).not.toContain("离线替身");
      expect(stdout).toContain("助手：我先查一下。");
      expect(stdout).toContain("需要审批 1/2：process_refund");
      expect(stdout).toContain("需要审批 2/2：process_refund");
      expect(stdout).toContain("ORD-001 已退款 299.00 元，ORD-003 没有退款，短信已发送。");
      expect(stdout.match(/审计 \[.*"caller_id":"user_zhangsan\(张三\)"\} ok/g)).toHaveLength(4);
      expect(refunds(data)).toEqual(["ORD-001"]);
      expect(outbox(data)).toMatchObject([{ phone: "18812345678", content: "已退款", status: "sent" }]);

      const [first] = endpoint.requests;
      expect(first?.stream).toBe(true);
      expect(JSON.stringify(first?.tools)).not.toContain("caller_id");
      expect(first?.tools?.map((tool) => tool.function.name).sort()).toEqual([
        "mcp_notification_send_sms",
        "mcp_order_batch_refund",
        "mcp_order_process_refund",
        "mcp_order_query_order",
        "validate_phone",
      ]);
      const system = JSON.stringify(first?.messages?.[0]);
      expect(system).toContain("签收后 7 天内"); // the policy, read from the server
      expect(system).toContain("退款已受理成功"); // the template
    },
  );

  it("that refuses, fails, answers garbage or is not there is named in one line each time, and the chat goes on", async () => {
    const answers = [401, 500, 200, "gone", "whole again"] as const;
    let answer: (typeof answers)[number] = 401;
    await using endpoint = await openaiEndpoint([{ text: "我在。" }]);
    const server = createServer((request, response) => {
      if (answer === "whole again") {
        response.writeHead(307, { location: `${endpoint.baseUrl}/chat/completions` }).end();
      } else if (answer === "gone") request.socket.destroy();
      else response.writeHead(answer).end("<html>\u001b[31mnot an endpoint\n    at secret (file.ts:1:2)</html>");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
    const { port } = server.address() as AddressInfo; // a TCP server that listens
    const args = ["--all", "--model", "openai-compatible:test", "--base-url", `http://127.0.0.1:${port}/v1`];
    const data = dataDirectory();
    const chat = openChat(data, { args });
    for (answer of answers) {
      await chat.sees("你> ");
      chat.say("你好");
      const text = await chat.sees(/(?:可以再试一次|助手：.*)。\n/);
      if (answer === "whole again") expect(text).toContain("助手：我在。");
      else expect(text).toMatch(/\n这一轮没有完成：.{3,300} \(reference [\da-f]{8}\)。可以再试一次。\n$/);
    }
    const { code, stdout, stderr } = await chat.say("quit").ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).not.toContain("\u001b");
    // what went wrong stands in the log, under the reference the person was told
    const references = [...stdout.matchAll(/\(reference (\w+)\)/g)].map(([, reference]) => reference);
    expect(references).toHaveLength(4);
    const log = readFileSync(join(data, "chat.log"), "utf8");
    expect([...log.matchAll(/^\d{4}-\S+Z (\w{8}) /gm)].map(([, reference]) => reference)).toEqual(references);
    expect(log).toMatch(/401 .*not an endpoint/);
    expect(log).toMatch(/^ +at /m);
    expect(stdout).not.toContain("not an endpoint");
  });

  it("that fails in the middle of a turn loses neither the question nor what was done", async () => {
    const call = { id: "call_a", name: "mcp_order_process_refund", args: { order_id: "ORD-001", reason: "坏了" } };
    await using endpoint = await openaiEndpoint([{ calls: [call] }, { status: 401 }, { text: "退款好了。" }]);
    const data = dataDirectory();
    const chat = openChat(data, {
      args: ["--all", "--model", "openai-compatible:test", "--base-url", endpoint.baseUrl],
    });
    chat.say("ORD-001 退款", "approve", "好了吗", "quit");
    const { code, stdout } = await chat.ended;
    expect(code).toBe(0);
    expect(stdout).toContain("这一轮没有完成：");
    expect(stdout).toContain("助手：退款好了。");
    expect(refunds(data)).toEqual(["ORD-001"]);
  });
});
