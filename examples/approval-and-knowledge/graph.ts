/** The service desk's graph, with nodes of its own: `look_up` → `approve` where much money is at stake → `reply`. */
import type { ToolMessage } from "@langchain/core/messages";
import { type BaseCheckpointSaver, type LangGraphRunnableConfig, StateGraph, StateSchema } from "@langchain/langgraph";
import { type AgentClient, type McpArtifact, mcpTools, type StateContext } from "@tenon/agent";
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
  session_id: z.string(),
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
  // by the names that models see: mcp_<server>_<tool>
  const tools = new Map((await mcpTools(client, { toolErrors: "throw" })).map((tool) => [tool.name, tool]));

  /** Calls a tool from a node. The call has an id, as a model's has: by it a question is found again. */
  async function call(name: string, args: object, config: LangGraphRunnableConfig): Promise<unknown> {
    const tool = tools.get(name);
    if (!tool) throw new Error(`There is no tool ${name}; there are ${[...tools.keys()].join(", ") || "none"}`);
    const message: ToolMessage = await tool.invoke({ type: "tool_call", id: name, name, args: { ...args } }, config);
    return (message.artifact as McpArtifact).structured; // what mcpTools puts there
  }

  /** Reads a whole article. A resource is read without a tool, so the context is given by hand. */
  async function read(name: string, state: Desk, config: LangGraphRunnableConfig): Promise<string> {
    const meta = { "dev.tenon/context": context.of(state, { threadId: config.configurable?.thread_id }) };
    const [article] = await client.readResources("kb", [`kb://articles/${name}`], { meta });
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
