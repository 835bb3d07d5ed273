import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@tenon/client";
import { bearer } from "@tenon/client/auth";
import { createSigningKey, publicJwks, signToken } from "@tenon/server/development";
import { describe, expect, it, onTestFinished } from "vitest";
import { type EndpointReply, openaiEndpoint } from "../../../packages/agent/test/openai-endpoint.ts";
import type { ServerName } from "../src/servers/names.ts";
import {
  dataDirectory,
  ENTRY,
  openChat,
  outbox,
  Program,
  processesOn,
  refundRows,
  refunds,
  run,
  talk,
} from "./desk.ts";
import { tokenFor } from "./token-for.ts";

const SMALL = "ORD-001 耳机坏了，请退款";
/** What is inside, and no person should read. */
const INTERNALS = /HTTP \d|127\.0\.0\.1|JSON-RPC|bearer\(|invalid_token|insufficient_scope|WWW-Auth/i;
const anHourAgo = () => ({ issuedAt: new Date(Date.now() - 7_200_000) });

/** A server of its own, and its address. */
async function serve(data: string, name: ServerName, ...args: string[]): Promise<string> {
  const server = new Program([process.execPath, ENTRY, "serve", name, "--port", "0", "--data", data, ...args]);
  const line = await server.sees(/http:\S+\/mcp\n/);
  return line.slice(line.indexOf("http")).trim();
}

/** A file whose token can be changed while the chat runs. */
function tokenFile(): { path: string; put(token: string): void } {
  const home = mkdtempSync(join(tmpdir(), "tenon-token-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const path = join(home, "token");
  return { path, put: (token) => writeFileSync(path, token, { mode: 0o600 }) };
}

/** A request as any program could send it. */
async function ask(url: string, token?: string): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }),
  });
}

/** Lines of the chat with this text. */
const linesWith = (stdout: string, text: string | RegExp): string[] =>
  stdout.split("\n").filter((line) => (typeof text === "string" ? line.includes(text) : text.test(line)));

/** How often a server that the chat started refused a request. */
function refusals(data: string, name: ServerName): number {
  return readFileSync(join(data, `${name}-server.log`), "utf8").match(/request refused/g)?.length ?? 0;
}

describe("the servers", () => {
  it("answer nobody without a token of the desk that was made for them", async () => {
    const data = dataDirectory();
    const [order, notification] = await Promise.all([serve(data, "order"), serve(data, "notification")]);
    const good = await tokenFor(data, "order");
    expect((await ask(order, good)).status).toBe(200);

    const none = await ask(order);
    expect(none.status).toBe(401);
    expect(none.headers.get("www-authenticate")).toMatch(/^Bearer .*resource_metadata="http/);
    const elsewhere = await ask(notification, good);
    expect(elsewhere.status).toBe(401);
    expect(await elsewhere.text()).toContain("was not issued for this server");
    const stranger = await createSigningKey();
    for (const changes of [anHourAgo(), { key: stranger }, { issuer: "urn:somebody:else" }]) {
      expect((await ask(order, await tokenFor(data, "order", changes))).status).toBe(401);
    }
  });

  it("refuse a caller_id that is not the token's, in the language of the request, and nothing happens", async () => {
    const data = dataDirectory();
    const [order, notification] = await Promise.all([serve(data, "order"), serve(data, "notification")]);
    const subject = "user_lisi";
    const headers = { "accept-language": "en" };
    await using client = createClient({
      servers: {
        order: { url: order, auth: bearer(await tokenFor(data, "order", { subject })) },
        notification: { url: notification, headers, auth: bearer(await tokenFor(data, "notification", { subject })) },
      },
    });
    const call = async (server: ServerName, tool: string, args: object, caller_id?: string) => {
      const { isError, content } = await client.callTool(server, tool, { ...args, caller_id });
      return { isError, text: JSON.stringify(content) };
    };
    const refund = { order_id: "ORD-001", reason: "坏了" };
    const message = { phone: "18812345678", content: "hi" };
    for (const forged of ["user_zhangsan(张三)", "user_zhangsan", "(李四)", "user_lisi "]) {
      const refused = await call("order", "process_refund", refund, forged);
      expect(refused).toMatchObject({ isError: true, text: expect.stringContaining("与令牌不符") });
      expect(await call("order", "batch_refund", { ...refund, order_ids: "ORD-001" }, forged)).toEqual(refused);
      expect((await call("order", "query_order", refund, forged)).isError).toBe(true);
      const unsent = await call("notification", "send_sms", message, forged);
      expect(unsent).toMatchObject({ isError: true, text: expect.stringContaining("does not fit the token") });
    }
    expect([refunds(data), outbox(data)]).toEqual([[], []]);

    expect((await call("order", "process_refund", refund, "user_lisi(李四)")).isError).toBe(false);
    expect((await call("notification", "send_sms", message)).isError).toBe(false);
    expect(refundRows(data)).toMatchObject([{ caller_id: "user_lisi(李四)" }]);
    expect(outbox(data)).toMatchObject([{ caller_id: "user_lisi" }]); // not said: then it is what the token says
  });

  it("take tokens of another issuer where they are told to, and of nobody else", async () => {
    const data = dataDirectory();
    const key = await createSigningKey({ algorithm: "RS256" });
    const keys = tokenFile();
    keys.put(JSON.stringify(publicJwks(key)));
    const issuer = "https://login.example";
    const audience = "https://orders.example/mcp";
    const url = await serve(data, "order", "--issuer", issuer, "--jwks", keys.path, "--audience", audience);
    const scopes = ["orders:refund"];
    const claims = { name: "李四" };
    const token = await signToken({ key, issuer, audience, subject: "user_lisi", scopes, claims });

    const own = await talk(data, ["查询订单ORD-001", "quit"], { args: ["--all", "--order-url", url] });
    expect(linesWith(own, "注意：订单服务没有接受您的令牌：它由 urn:tenon:after-sales:desk 签发")).toHaveLength(1);
    const said = await talk(data, ["查询订单ORD-001", SMALL, "approve", "给 18812345678 发短信，内容：好", "quit"], {
      args: ["--all", "--order-url", url],
      env: { TENON_ORDER_TOKEN: token },
    });
    expect(said).not.toContain("注意");
    expect(said).toContain("退款已受理成功");
    expect(refundRows(data)).toMatchObject([{ caller_id: "user_lisi(李四)" }]);
    expect(outbox(data)).toMatchObject([{ caller_id: "user_lisi(李四)" }]); // the desk's own token is of the same person
  });

  it("and the chat say in one line what is wrong with how tokens were set up", async () => {
    const data = dataDirectory();
    const wrong = async (args: string[], why: RegExp, env?: Record<string, string>) => {
      const { code, stderr } = await run([...args, "--data", data], env);
      expect({ code, lines: stderr.trim().split("\n") }).toEqual({ code: 1, lines: [expect.stringMatching(why)] });
    };
    await wrong(["serve", "order", "--issuer", "https://login.example"], /needs both --issuer.* and --jwks/);
    await wrong(["serve", "order"], /needs both --issuer.* and --jwks/, { TENON_JWKS: "keys.json" });
    await wrong(["serve", "order", "--issuer", "x", "--jwks", join(data, "none.json")], /none\.json is no key set/);
    await wrong(["serve", "all", "--audience", "https://a.example"], /--audience names one server/);
    await wrong(["chat", "--order-token-file", join(data, "none")], /The token file .*none cannot be used/);
    const [TENON_ORDER_TOKEN, TENON_NOTIFICATION_TOKEN] = [
      await tokenFor(data, "order"),
      await tokenFor(data, "notification", { subject: "user_lisi" }),
    ];
    await wrong(["chat"], /The tokens are of different users/, { TENON_ORDER_TOKEN, TENON_NOTIFICATION_TOKEN });
  });
});

describe("a token that a server does not take", () => {
  it.each([
    ["zh", "注意：订单服务没有接受您的令牌：", "查询订单ORD-001", "1. 无理由退货"],
    ["en", "Note: The order service did not accept your token: ", "Look up order ORD-001", "1. Without a reason"],
  ])(
    "because it was made for another one is named once (%s), and the rest works",
    async (lang, note, query, policy) => {
      const data = dataDirectory();
      const TENON_ORDER_TOKEN = await tokenFor(data, "notification");
      const questions = [query, query, lang === "zh" ? "退货政策是什么" : "What is the return policy?"];
      const said = await talk(data, [...questions, "/status", "quit"], {
        args: ["--all", "--lang", lang],
        env: { TENON_ORDER_TOKEN },
      });
      const [line = "", ...more] = linesWith(said, note);
      expect(more).toEqual([]);
      expect(line).toContain("urn:tenon:after-sales:notification");
      // the model knows why, and says so each time
      const reason = line.slice(line.indexOf("：") + 1).replace(/^Note: /, "");
      expect(linesWith(said, /^(助手：|assistant: )/).filter((one) => one.endsWith(reason))).toHaveLength(2);
      expect(said).toContain(policy);
      expect(said).not.toMatch(INTERNALS);
    },
  );

  it("because it has expired meanwhile fails its call in one line; a new one works at once", async () => {
    const data = dataDirectory();
    const file = tokenFile();
    file.put(await tokenFor(data, "order"));
    const chat = openChat(data, { args: ["--all", "--order-token-file", file.path] }).say(SMALL);
    await chat.sees("决定> ");
    const before = refusals(data, "order");
    file.put(await tokenFor(data, "order", anHourAgo()));
    chat.say("approve");
    const failed = await chat.sees(/审计 .*error\n/);
    expect(linesWith(failed, /✗ 失败: 订单服务没有接受您的令牌：它已于 \d{4}-.* 过期，请换一个新的。$/)).toHaveLength(
      1,
    );
    expect(linesWith(failed, /^助手：退款没有完成：订单服务没有接受您的令牌：它已于/)).toHaveLength(1);
    expect(refusals(data, "order") - before).toBeLessThanOrEqual(2); // the call, and at most once the list of tools
    chat.say("查询订单ORD-001");
    await chat.sees(/助手：订单服务没有接受您的令牌：它已于 .* 过期/);
    await chat.sees("你> ");
    expect(refusals(data, "order") - before).toBeLessThanOrEqual(4);

    file.put(await tokenFor(data, "order"));
    chat.say("查询订单ORD-001", SMALL, "approve", "quit");
    const { code, stdout } = await chat.ended;
    expect(code).toBe(0);
    expect(stdout).toContain("299.00 元");
    expect(stdout).not.toMatch(INTERNALS);
    expect(refunds(data)).toEqual(["ORD-001"]);
  });

  it("for the policy is named when somebody asks for it", async () => {
    const data = dataDirectory();
    const TENON_NOTIFICATION_TOKEN = await tokenFor(data, "notification", { scopes: ["messages:send"] });
    const said = await talk(data, ["退货政策是什么", "给 18812345678 发短信，内容：好", "quit"], {
      env: { TENON_NOTIFICATION_TOKEN },
    });
    const lacking = "您的令牌没有通知服务所需的权限 policies:read，这一步没有执行。";
    expect(linesWith(said, lacking)).toEqual([`注意：${lacking}`, `助手：${lacking}`]);
    expect(outbox(data)).toHaveLength(1);
    expect(said).not.toMatch(INTERNALS);
  });

  it("for want of a scope is named: at the start with what it hides, later with the step that failed", async () => {
    const data = dataDirectory();
    const file = tokenFile();
    const narrow = () => tokenFor(data, "order", { scopes: ["orders:read"] });
    file.put(await narrow());
    const args = ["--all", "--order-token-file", file.path];
    const said = await talk(data, ["查询订单ORD-001", SMALL, "quit"], { args });
    const hidden = "您的令牌没有订单服务的权限 orders:refund，不能使用：process_refund、batch_refund。";
    expect(linesWith(said, `注意：${hidden}`)).toHaveLength(1);
    expect(linesWith(said, `助手：${hidden}`)).toHaveLength(1);
    expect(said).toContain("299.00 元"); // what it may, it does

    file.put(await tokenFor(data, "order"));
    const chat = openChat(data, { args }).say(SMALL);
    await chat.sees("决定> ");
    file.put(await narrow());
    chat.say("approve");
    const failed = await chat.sees(/审计 .*error\n/);
    const lacking = "您的令牌没有订单服务所需的权限 orders:refund，这一步没有执行。";
    expect(linesWith(failed, `✗ 失败: ${lacking}`)).toHaveLength(1);
    expect(linesWith(failed, /^助手：退款没有完成：您的令牌没有订单服务所需的权限/)).toHaveLength(1);
    chat.say("查询订单ORD-001", "quit");
    const { stdout } = await chat.ended;
    expect(stdout).toContain("299.00 元");
    expect(said + stdout).not.toMatch(INTERNALS);
    expect(refunds(data)).toEqual([]);
  });
});

describe("tokens", () => {
  const REPLIES: readonly EndpointReply[] = [
    { calls: [{ id: "a", name: "mcp_order_process_refund", args: { order_id: "ORD-001", reason: "坏了" } }] },
    { calls: [{ id: "b", name: "mcp_notification_send_sms", args: { phone: "18812345678", content: "好" } }] },
    { calls: [{ id: "c", name: "mcp_order_query_order", args: { order_id: "ORD-001" } }] },
    { text: "好了。" },
  ];
  /** Any signed token, the desk's own included. */
  const JWT = /eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}/;

  it("stay out of logs, threads, audit lines, command lines, the model's input and everything on the screen", async () => {
    await using endpoint = await openaiEndpoint(REPLIES);
    const data = dataDirectory();
    const TENON_ORDER_TOKEN = await tokenFor(data, "order");
    const signature = TENON_ORDER_TOKEN.split(".")[2] ?? "?";
    const args = ["--model", "openai-compatible:test", "--base-url", endpoint.baseUrl];
    const chat = openChat(data, { args, env: { TENON_ORDER_TOKEN } }).say("ORD-001 坏了，请退款并发短信");
    await chat.sees("决定> ");
    const servers = processesOn(data).filter(({ command }) => command.includes("serve "));
    expect(servers).toHaveLength(2);
    for (const { pid, command } of processesOn(data)) {
      expect(command).not.toMatch(JWT);
      const environment = `/proc/${pid}/environ`;
      if (pid !== chat.pid && existsSync(environment)) expect(readFileSync(environment, "latin1")).not.toMatch(JWT);
    }
    // one that fails, too: errors tell most
    const { code, stdout, stderr } = await chat.say("approve", "/audit", "@order://ORD-404 看看", "quit").ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(refunds(data)).toEqual(["ORD-001"]);
    expect(outbox(data)).toHaveLength(1);
    expect(stdout).toContain("审计 [");

    const files = readdirSync(data, { recursive: true, encoding: "utf8" })
      .map((name) => join(data, name))
      .filter((path) => statSync(path).isFile());
    expect(files.length).toBeGreaterThan(5);
    const written = [stdout, JSON.stringify(endpoint.requests), ...files.map((path) => readFileSync(path, "latin1"))];
    expect(written[1]).toContain("ORD-001");
    for (const text of written) {
      expect(text).not.toContain(signature);
      expect(text).not.toMatch(JWT);
    }
    const key = files.find((path) => path.endsWith("signing-key.pem")) ?? "";
    expect(statSync(key).mode & 0o777).toBe(0o600);
  });
});
