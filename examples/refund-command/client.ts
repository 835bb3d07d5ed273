import { Command, MemorySaver, ReducedValue, StateSchema } from "@langchain/langgraph";
import { type AgentInterceptor, mcpMiddleware, mcpTools, OfflineModel, toolMessageOf } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { createAgent, HumanMessage } from "langchain";
import { z } from "zod";
import { check } from "../lib/check.ts";
import orders from "./server.ts";

const state = new StateSchema({
  // calls of one turn may both write it: a reducer says which value stays
  last_op_time: new ReducedValue(z.string().default(""), { reducer: (_old: string, latest: string) => latest }),
  // by call: createAgent hands the state of a thread to its reducers again with each turn, so adding up would count twice
  operations: new ReducedValue(
    z.record(z.string(), z.string()).default(() => ({})),
    { reducer: (all: Record<string, string>, more: Record<string, string>) => ({ ...all, ...more }) },
  ),
});

/** Every call is noted in the agent's state; a refund that went through also ends the run. */
const afterwards: AgentInterceptor = async (request, next) => {
  const outcome = await next(request);
  if (!("isError" in outcome)) return outcome; // another interceptor's message or command
  const refunded = request.name === "process_refund" && !outcome.isError;
  return new Command({
    update: {
      messages: [toolMessageOf(request, outcome)],
      last_op_time: new Date().toISOString(),
      operations: {
        [request.runtime.toolCallId ?? request.callId]:
          `${request.name} ${request.args.order_id}${outcome.isError ? " ✗" : ""}`,
      },
    },
    ...(refunded && { goto: "__end__" }),
  });
};

const { url } = await orders.listen({ port: 0 });
await using client = createClient({ servers: { orders: { url } }, interceptors: [afterwards] });
let modelCalls = 0;
const model = new OfflineModel({
  reply({ text, results }) {
    modelCalls += 1;
    if (results.length > 0) return { text: `客服：${results.map((result) => result.text).join("；")}` };
    const name = text.startsWith("退") ? "mcp_orders_process_refund" : "mcp_orders_check_order";
    return { calls: (text.match(/ORD-\d+/g) ?? []).map((order_id) => ({ name, args: { order_id } })) };
  },
});
const agent = createAgent({
  model,
  tools: await mcpTools(client),
  middleware: [mcpMiddleware()], // goto "__end__" needs it
  stateSchema: state,
  checkpointer: new MemorySaver(),
});
const ask = async (question: string) => {
  modelCalls = 0;
  const config = { configurable: { thread_id: "customer-7" } };
  const result = await agent.invoke({ messages: [new HumanMessage(question)] }, config);
  return { ...result, operations: Object.values(result.operations), last: result.messages.at(-1)?.text };
};

const query = await ask("查 ORD-001 和 ORD-002");
check(
  "a query goes on to the model",
  [modelCalls, query.last],
  [2, "客服：ORD-001 无线耳机，已签收，299 元；ORD-002 机械键盘，配送中，599 元"],
);
check("the time of the last operation is in the state", query.last_op_time, /^\d{4}-\d\d-\d\dT/);
check("two calls at once both left their note", query.operations, ["check_order ORD-001", "check_order ORD-002"]);

const refund = await ask("退 ORD-001");
check("a refund ends the run: the model is not asked again", [modelCalls, refund.last], [1, "ORD-001 已退款 299 元"]);

const again = await ask("退 ORD-001");
check(
  "the next turn is a normal one; a second refund is refused",
  [modelCalls, again.last],
  [2, "客服：ORD-001 已退款，不能退款"],
);
const early = await ask("退 ORD-002");
check("what is not delivered is not refunded", early.last, "客服：ORD-002 配送中，不能退款");
check("all of it is on record", again.operations.slice(2), ["process_refund ORD-001", "process_refund ORD-001 ✗"]);

await client.close();
await orders.close();
