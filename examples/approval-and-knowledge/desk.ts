/** One process at the service desk, with all it has: a client of both servers, a graph, a saved conversation. */
import { join } from "node:path";
import { Command } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { type Answer, contextMeta, invokeAgent, openQuestions, resumeValue, stateContext } from "@tenon/agent";
import { createClient, type ServerConfig } from "@tenon/client";
import type { Registry } from "@tenon/client/registry";
import { caller } from "./contract.ts";
import { openGraph } from "./graph.ts";

export interface DeskOptions {
  /** Says where the knowledge base is. */
  readonly registry: Registry;
  /** Where the conversations are kept. */
  readonly folder: string;
  readonly servers: { readonly kb: ServerConfig; readonly approval: ServerConfig };
}

/** The desk, as `openDesk` opened it. */
export type Desk = Awaited<ReturnType<typeof openDesk>>;

/** Opens the desk. What it was at in an earlier process, it goes on with. */
export async function openDesk({ folder, registry, servers }: DeskOptions) {
  // who asks is in the state; the session is the conversation
  const context = stateContext(caller, { fields: { session_id: (_state, _run, threadId) => threadId } });
  const client = createClient({
    servers,
    registry,
    elicitation: "interrupt",
    interceptors: [contextMeta(context, { servers: Object.keys(servers) })],
  });
  const checkpointer = SqliteSaver.fromConnString(join(folder, "threads.sqlite"));
  const graph = await openGraph(client, context, checkpointer);
  const thread = (id: string) => ({ configurable: { thread_id: id } });

  return {
    client,
    checkpointer,
    /** Asks a service question in a conversation; ends with the reply, or where a person is asked. */
    ask: (id: string, state: { user_id?: string; question: string; amount?: number }) =>
      invokeAgent(graph, state, thread(id)),
    /** What a conversation waits for. */
    waiting: async (id: string) => {
      const [question] = await openQuestions(graph, id);
      return question?.kind === "elicitation" ? Object.values(question.questions).map(({ message }) => message) : [];
    },
    /** Answers what it waits for, each question alike, and goes on. */
    async answer(id: string, answer: "approve" | "reject" | "decline") {
      const [question] = await openQuestions(graph, id);
      if (question?.kind !== "elicitation") throw new Error(`${id} waits for no answer`);
      const one = answer === "decline" ? { action: answer } : { action: "accept" as const, content: { value: answer } };
      const answers = Object.fromEntries(Object.keys(question.questions).map((key) => [key, one]));
      const value = resumeValue(question, { answers } satisfies Answer);
      return invokeAgent(graph, new Command({ resume: { [question.id]: value } }), thread(id));
    },
    /** Says what the state of a stopped conversation lacked, and goes on where it stopped. */
    async goOn(id: string, lacked: { user_id: string }) {
      await graph.updateState(thread(id), lacked);
      return invokeAgent(graph, null, thread(id));
    },
    async close() {
      await client.close();
      checkpointer.db.close();
    },
  };
}
