/** The service desk's graph, with nodes of its own: `look_up` → `approve` where much money is at stake → `reply`. */
import type { ToolMessage } from "@langchain/core/messages";
import { type BaseCheckpointSaver, type LangGraphRunnableConfig, StateGraph, StateSchema } from "@langchain/langgraph";
import { type AgentClient, type McpArtifact, mcpTools } from "@tenon/agent";
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
  user_id: z.string().optional(), // whoever fills the state must say it; the contract of both servers wants it
  session_id: z.string(),
  question: z.string(),
  amount: z.number().default(0),
  found: found.optional(),
  decided: decided.optional(),
  answer: z.string().optional(),
});
type Desk = typeof State.State;

/** The graph; its nodes call the tools of the client. */
export async function openGraph(client: AgentClient, checkpointer: BaseCheckpointSaver) {
  const tools = new Map((await mcpTools(client, { toolErrors: "throw" })).map((tool) => [tool.name, tool]));

  /** Calls a tool from a node, as LangGraph's own tool node does: the call has an id, and goes with the state. */
  async function call(name: string, args: object, state: Desk, config: LangGraphRunnableConfig): Promise<unknown> {
    const tool = tools.get(name);
    if (!tool) throw new Error(`There is no tool ${name}; there are ${[...tools.keys()].join(", ") || "none"}`);
    const call = { type: "tool_call" as const, id: name, name, args: { ...args } };
    const message: ToolMessage = await tool.invoke(call, { ...config, state });
    return (message.artifact as McpArtifact).structured;
  }

  return new StateGraph(State)
    .addNode("look_up", async (state, config) => {
      const args = { query: state.question, limit: 3 };
      return { found: found.parse(await call("mcp_kb_search_articles", args, state, config)) };
    })
    .addNode("approve", async (state, config) => {
      const [best] = state.found?.hits ?? [];
      const args = { subject: state.question, amount: state.amount, grounds: best?.snippet ?? say("无", "none") };
      return { decided: decided.parse(await call("mcp_approval_request_approval", args, state, config)) };
    })
    .addNode("reply", ({ found, decided }) => ({ answer: answerOf(found, decided) }))
    .addEdge("__start__", "look_up")
    .addConditionalEdges("look_up", ({ amount }) => (amount >= APPROVAL_FROM ? "approve" : "reply"))
    .addEdge("approve", "reply")
    .addEdge("reply", "__end__")
    .compile({ checkpointer });
}

function answerOf(found: Desk["found"], decided: Desk["decided"]): string {
  const [best] = found?.hits ?? [];
  const known = best ? `${best.title}: ${best.snippet}` : say("没有找到相关文章。", "No article was found.");
  if (!decided) return known;
  const words = {
    approved: say("已批准", "approved"),
    rejected: say("已驳回", "rejected"),
    unanswered: say("无人批准", "not approved by anybody"),
  };
  return `${known}\n${say(`审批 ${decided.number}：`, `Approval ${decided.number}: `)}${words[decided.decision]}`;
}
