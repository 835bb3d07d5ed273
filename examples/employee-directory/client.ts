import { mcpMiddleware, mcpTools, OfflineModel } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { bearer } from "@tenon/client/auth";
import { createSigningKey, signToken, type TokenOptions } from "@tenon/server/development";
import { createAgent, HumanMessage } from "langchain";
import { check } from "../lib/check.ts";
import directory, { AUDIENCE, ISSUER, key, seen } from "./server.ts";

const HOUR_MS = 3_600_000;
/** A token as the company's authorization server would issue it; the changes make those it would not. */
const issue = (changes: Partial<TokenOptions> = {}): Promise<string> =>
  signToken({
    key,
    issuer: ISSUER,
    audience: AUDIENCE,
    subject: "agent-011",
    scopes: ["employees:read", "budgets:read"],
    ttlMs: HOUR_MS,
    ...changes,
  });

const { url } = await directory.listen({ port: 0 });

async function statusFor(token?: string): Promise<number> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  const authorization = token === undefined ? undefined : { authorization: `Bearer ${token}` };
  return (await fetch(url, { method: "POST", headers: { ...headers, ...authorization }, body })).status;
}
check("with a token of this issuer for this server, it answers", await statusFor(await issue()), 200);
check("without a token: 401", await statusFor(), 401);
check("from another issuer: 401", await statusFor(await issue({ issuer: "another-auth-server" })), 401);
check("for another server: 401", await statusFor(await issue({ audience: "another-mcp-server" })), 401);
const issuedAt = new Date(Date.now() - 2 * HOUR_MS);
check("expired an hour ago: 401", await statusFor(await issue({ issuedAt })), 401);
const stranger = await createSigningKey({ algorithm: "RS256" });
check("signed by somebody else: 401", await statusFor(await issue({ key: stranger })), 401);

// an agent that asks with its token, and nothing of it in sight of the model
await using client = createClient({ servers: { directory: { url, auth: bearer(await issue()) } } });
const tools = await mcpTools(client);
const model = new OfflineModel({
  reply({ text, results }) {
    if (results.length > 0) return { text: results.map((result) => result.text).join("；") };
    const calls = [
      ...(text.match(/E\d+/g) ?? []).map((employee_id) => ({
        name: "mcp_directory_query_employee",
        args: { employee_id },
      })),
      ...(text.match(/(技术|财务|市场)部/g) ?? []).map((department) => ({
        name: "mcp_directory_query_department_budget",
        args: { department },
      })),
    ];
    return { calls };
  },
});
const agent = createAgent({ model, tools, middleware: [mcpMiddleware()] });
const { messages } = await agent.invoke({ messages: [new HumanMessage("E001 是谁？技术部还有多少预算？")] });
check(
  "the agent looks both up",
  messages.at(-1)?.text,
  "E001 张三，技术部，高级工程师；技术部预算：总额 500 万元，已用 320 万元，剩余 180 万元",
);
check("and the tools know who asked", seen, [
  "agent-011 query_employee E001",
  "agent-011 query_department_budget 技术部",
]);

// another agent, whose token says nothing of budgets
const narrow = await issue({ subject: "agent-012", scopes: ["employees:read"] });
await using other = createClient({ servers: { directory: { url, auth: bearer(narrow) } } });
check(
  "without the scope there is no budget tool to see",
  (await other.listTools()).map((tool) => tool.wireName),
  ["query_employee"],
);
const refused = await other
  .callTool("directory", "query_department_budget", { department: "财务部" })
  .then(() => "answered", String);
check("and a call to it says which scope it needs", refused, /lacks scopes? .*budgets:read/);
const { isError } = await other.callTool("directory", "query_employee", { employee_id: "E002" });
check("what it may, it does", [isError, seen.at(-1)], [false, "agent-012 query_employee E002"]);

await client.close();
await other.close();
await directory.close();
