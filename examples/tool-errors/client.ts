import { mcpMiddleware, mcpTools, OfflineModel } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { createAgent, createMiddleware, HumanMessage } from "langchain";
import { check } from "../lib/check.ts";
import users from "./server.ts";

const { url } = await users.listen({ port: 0 });
await using client = createClient({ servers: { users: { url } } });

// A model that reads what went wrong: it tries again after "请稍后重试" and gives up after anything else.
const model = new OfflineModel({
  reply({ text, results }) {
    const last = results.at(-1);
    if (last?.status === "success") return { text: `${last.text}（第 ${results.length} 次）` };
    if (last && !last.text.includes("重试")) return { text: `抱歉：${last.text}` };
    const [what = "", value = ""] = text.split(" ");
    return what === "用户"
      ? { calls: [{ name: "mcp_users_get_user", args: { user_id: /^\d+$/.test(value) ? Number(value) : value } }] }
      : { calls: [{ name: "mcp_users_search_database", args: { keyword: value } }] };
  },
});
const logged = createMiddleware({ name: "Logged", wrapToolCall: (request, handler) => handler(request) });
const ask = async (question: string, toolErrors: "return" | "throw", middleware = [mcpMiddleware()]) => {
  const agent = createAgent({ model, tools: await mcpTools(client, { toolErrors }), middleware });
  const { messages } = await agent.invoke({ messages: [new HumanMessage(question)] });
  return messages.at(-1)?.text;
};

check("a user", await ask("用户 u001", "return"), "张三（第 1 次）");
check("a lasting error reaches the model once", await ask("用户 u009", "return"), "抱歉：用户 u009 不存在，请核对编号");
check(
  "a passing one is tried again until it works",
  await ask("查找 退款", "return"),
  /^“退款”：找到 10 条记录（第 \d+ 次）$/,
);
check(
  "arguments that do not fit are one short line",
  await ask("用户 9", "return"),
  '抱歉：The arguments do not fit tool "get_user" of server "users"; nothing was sent. Correct them and call again:\n- user_id: must be a string, got 9',
);

for (const [what, middleware] of Object.entries({ none: [], ours: [mcpMiddleware()], "somebody's": [logged] })) {
  const returned = await ask("用户 u009", "return", middleware);
  check(`return never ends the run (middleware: ${what})`, returned, /^抱歉/);
  const error = await ask("用户 u009", "throw", middleware).catch((reason: unknown) => reason);
  const typed = error instanceof Error && [error.name, "code" in error && error.code, error.message];
  check(`throw always does (middleware: ${what})`, typed, [
    "ExecutionError",
    "tool_error",
    "用户 u009 不存在，请核对编号",
  ]);
}

await client.close();
await users.close();
