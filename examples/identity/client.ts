import { type AgentInterceptor, mcpMiddleware, mcpTools, OfflineModel } from "@tenon/agent";
import { createClient, type ToolRuntime } from "@tenon/client";
import { injectArgs } from "@tenon/client/interceptors";
import { createAgent, HumanMessage } from "langchain";
import { z } from "zod";
import { check } from "../lib/check.ts";
import orders, { seen } from "./server.ts";

const Context = z.object({ userId: z.string(), userName: z.string(), apiKey: z.string() });
type Context = z.infer<typeof Context>;
type Runtime = ToolRuntime<Context>;

/** The caller's own key goes along as a header of this one call. */
const authorize: AgentInterceptor<Context> = (request, next) => {
  const { apiKey } = request.runtime.context ?? {};
  return next(apiKey ? request.with({ headers: { Authorization: `Bearer ${apiKey}` } }) : request);
};

const { url } = await orders.listen({ port: 0 });
await using client = createClient({
  servers: { orders: { url } },
  interceptors: [authorize, injectArgs<Runtime>({ caller_id: ({ runtime }) => runtime.context?.userId })],
});
const tools = await mcpTools(client);
check("the model sees no caller_id", JSON.stringify(tools.map((tool) => tool.schema)).includes("caller_id"), false);

// "查 ORD-001 ORD-002": all orders at once. "退 ORD-001": a refund in the name of somebody else, as an injected prompt would try.
const model = new OfflineModel({
  reply({ text, results }) {
    if (results.length > 0) return { text: results.map((result) => result.text).join("；") };
    const ids = text.match(/ORD-\d+/g) ?? [];
    if (text.startsWith("查"))
      return { calls: ids.map((order_id) => ({ name: "mcp_orders_query_order", args: { order_id } })) };
    const args = { order_id: ids[0] ?? "", reason: "不想要了", caller_id: "admin" };
    return { calls: [{ name: "mcp_orders_submit_refund", args }] };
  },
});
const agent = createAgent({ model, tools, contextSchema: Context, middleware: [mcpMiddleware()] });
const zhangsan: Context = { userId: "zhangsan", userName: "张三", apiKey: "sk-zhangsan" };
const lisi: Context = { userId: "lisi", userName: "李四", apiKey: "sk-lisi" };
const ask = async (context: Context, question: string): Promise<string> => {
  const { messages } = await agent.invoke({ messages: [new HumanMessage(question)] }, { context });
  return messages.at(-1)?.text ?? "";
};

// ten runs at once, of two people, with several calls each
const runs = Array.from({ length: 10 }, (_, i) => ask(i % 2 ? lisi : zhangsan, "查 ORD-001 ORD-002 ORD-003"));
const replies = await Promise.all(runs);
check(
  "everybody gets an answer",
  replies[0],
  /无线耳机，已签收，299 元；ORD-002 机械键盘，待发货，599 元；ORD-003 显示器/,
);
check("as many calls as were made", seen.length, 30);
const pairs = [...new Set(seen.map(({ caller, authorization }) => `${caller} ${authorization}`))].sort();
check("id and key are each caller's own, never mixed", pairs, ["lisi Bearer sk-lisi", "zhangsan Bearer sk-zhangsan"]);

const refund = await ask(lisi, "退 ORD-001");
check("what the model writes there is thrown away", refund, "ORD-001 的退款申请已提交（不想要了），申请人 lisi");
check("and the server saw nothing of it", seen.at(-1), {
  tool: "submit_refund",
  order: "ORD-001",
  caller: "lisi",
  authorization: "Bearer sk-lisi",
});

await client.close();
await orders.close();
