import { Command } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { isRecord } from "@tenon/core";
import { openPostgres } from "@tenon/store/postgres";
import { openSqlite } from "@tenon/store/sqlite";
import { createAgent, HumanMessage, tool } from "langchain";
import { approvals, openQuestions, resumeValue, withThreadLease } from "../src/index.ts";
import { later } from "./later.ts";
import { callingModel } from "./scripted-model.ts";

/** What the test tells one of the processes to do. */
export type Order =
  | { readonly do: "ask" | "resume without a lease"; readonly thread: string }
  | { readonly do: "resume"; readonly thread: string; readonly lease?: { ttlMs?: number; waitMs?: number } }
  | { readonly do: "finish" };
/** What a process tells the test. */
export type Report =
  | { readonly is: "ready" | "refunding" }
  | { readonly is: "ended"; readonly reply: string }
  | { readonly is: "failed"; readonly code: string };

// one of two processes that run the same threads, told what to do round by round
const [kind, where = "", schema = ""] = process.argv.slice(2);
const sqlite = kind === "sqlite";
const stores = sqlite ? openSqlite({ path: `${where}.leases` }) : openPostgres({ url: where, schema });
const saver = sqlite
  ? SqliteSaver.fromConnString(where)
  : PostgresSaver.fromConnString(where, { schema: `${schema}_threads` });
const report = (what: Report): void => void process.send?.(what);

let finish = (): void => undefined;
/** Has an effect, and then takes until the test has heard from the other process. */
const refund = tool(
  async () => {
    const { promise, resolve } = later<void>();
    finish = resolve;
    report({ is: "refunding" });
    await promise;
    return "refunded";
  },
  { name: "refund", description: "Refunds", schema: { type: "object", properties: {} } },
);
const agent = createAgent({
  model: callingModel({ name: "refund" }),
  tools: [refund],
  checkpointer: saver,
  middleware: [approvals([refund], { refund: true })],
});

async function carryOut(order: Order): Promise<void> {
  if (order.do === "finish") return finish();
  const config = { configurable: { thread_id: order.thread } };
  try {
    if (order.do === "ask") await agent.invoke({ messages: [new HumanMessage("go")] }, config);
    else {
      const resume = async (signal?: AbortSignal): Promise<void> => {
        const [question] = await openQuestions(agent, order.thread);
        const held = { ...config, ...(signal && { signal }) };
        // a run that was killed after its approval has nothing to ask, and goes on
        if (!question) return void (await agent.invoke(null, held));
        const value = resumeValue(question, { decisions: [{ type: "approve" }] });
        await agent.invoke(new Command({ resume: { [question.id]: value } }), held);
      };
      if (order.do === "resume") await withThreadLease(stores.leases, order.thread, resume, order.lease);
      else await resume();
    }
    const { values } = await agent.graph.getState(config);
    report({ is: "ended", reply: values.messages.at(-1)?.text ?? "" });
  } catch (error) {
    report({ is: "failed", code: isRecord(error) && typeof error.code === "string" ? error.code : String(error) });
  }
}

process.on("message", (order) => void carryOut(order as Order)); // from the test beside this file
process.once("disconnect", () => process.exit()); // nothing of the test may outlive it
report({ is: "ready" });
