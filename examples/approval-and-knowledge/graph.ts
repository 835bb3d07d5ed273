/** The service desk's graph, with nodes of its own: `look_up` → `approve` where much money is at stake → `reply`. */
import { type BaseCheckpointSaver, type LangGraphRunnableConfig, StateGraph, StateSchema } from "@langchain/langgraph";
import { type AgentClient, type StateContext, toolCaller } from "@tenon/agent";
import { z } from "zod";
import { say } from "../lib/locale.ts";

/** From this amount on a person has to agree. */
const APPROVAL_FROM = 500;

const found = z.object({
  hits: z.array(z.object({ name: z.string(), title: z.string(), snippet: z.string() })),
  answered_by: z.string(),
});
const decided = z.object({ decision: z.enum(["approved", "rejected", "unanswered"]), number: z.int() });

const State = new StateSchema({
  user_id: z.string().optional(), // the contract of both servers wants it: a state without it does not get far
  question: z.string(),
  amount: z.number().default(0),
  found: found.optional(),
  article: z.string().optional(),
  decided: decided.optional(),
  answer: z.string().optional(),
});
type Desk = typeof State.State;

/** The graph; its nodes call what the client knows, and tell it who asks in the context's fields. */
export async function openGraph(client: AgentClient, context: StateContext, checkpointer: BaseCheckpointSaver) {
  const call = await toolCaller(client);

  /** Reads a whole article. No tool is called, so the context and the thread are given by hand. */
  async function read(name: string, state: Desk, { executionInfo }: LangGraphRunnableConfig): Promise<string> {
    const runtime = { threadId: executionInfo?.threadId };
    const options = { meta: context.meta(state, runtime), runtime }; // of the same replica as the search
    const [article] = await client.readResources("kb", [`kb://articles/${name}`], options);
    return article?.asString() ?? "";
  }

  return new StateGraph(State)
    .addNode("look_up", async (state, config) => {
      const args = { query: state.question, limit: 3 };
      const result = found.parse(await call("mcp_kb_search_articles", args, config));
      const [best] = result.hits;
      return { found: result, article: best && (await read(best.name, state, config)) };
    })
    .addNode("approve", async (state, config) => {
      const grounds = state.found?.hits[0]?.snippet ?? say("无", "none");
      const args = { subject: state.question, amount: state.amount, grounds };
      return { decided: decided.parse(await call("mcp_approval_request_approval", args, config)) };
    })
    .addNode("reply", (state) => ({ answer: answerFrom(state) }))
    .addEdge("__start__", "look_up")
    .addConditionalEdges("look_up", ({ amount }) => (amount >= APPROVAL_FROM ? "approve" : "reply"))
    .addEdge("approve", "reply")
    .addEdge("reply", "__end__")
    .compile({ checkpointer });
}

const DECISIONS = {
  approved: () => say("已批准", "approved"),
  rejected: () => say("已驳回", "rejected"),
  unanswered: () => say("无人批准", "not approved by anybody"),
};

function answerFrom({ article, decided }: Desk): string {
  const known = article ?? say("没有找到相关文章。", "There is no article about it.");
  if (!decided) return known;
  const number = say(`审批 ${decided.number}：`, `Approval ${decided.number}: `);
  return `${known}\n${number}${DECISIONS[decided.decision]()}`;
}
