import { ToolMessage } from "@langchain/core/messages";
import { Command, MemorySaver, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { createAgent, HumanMessage } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type AgentInterceptor, mcpMiddleware, mcpTools } from "../src/index.ts";
import { scriptedClient } from "./scripted-client.ts";
import { callingModel } from "./scripted-model.ts";

const go = { messages: [new HumanMessage("go")] };
const echo = { run: () => ({ text: "echo" }) };

async function agentWith(interceptor: AgentInterceptor, options: { guarded?: boolean; throwing?: boolean } = {}) {
  const client = scriptedClient({ echo }, { interceptors: [interceptor] });
  return createAgent({
    model: callingModel({ name: "mcp_shop_echo" }),
    tools: await mcpTools(client, options.throwing ? { toolErrors: "throw" } : {}),
    middleware: options.guarded === false ? [] : [mcpMiddleware()],
    stateSchema: z.object({ lastOpTime: z.string().optional(), auditLog: z.array(z.string()).optional() }),
  });
}

const answerOf = (result: { messages: unknown[] }) => result.messages.find((one) => ToolMessage.isInstance(one));

describe("a Command whose update", () => {
  it("names a key the state has, even one without a value yet, is applied", async () => {
    const agent = await agentWith(async () => new Command({ update: { lastOpTime: "now" } }));
    expect(await agent.invoke(go)).toMatchObject({ lastOpTime: "now" });
  });

  it.each([true, false])(
    "names a key the state does not have is an error message (mcpMiddleware: %s)",
    async (guarded) => {
      const agent = await agentWith(async () => new Command({ update: { auditlog: ["x"] } }), { guarded });
      const message = answerOf(await agent.invoke({ ...go, auditLog: [] }));
      expect(message).toMatchObject({ status: "error", artifact: { error: { code: "unknown_state_key" } } });
      expect(message?.text).toContain(
        'updates "auditlog", which is not part of the agent\'s state; did you mean "auditLog"?',
      );
      expect(message?.text).toContain("The tool itself may have run");
    },
  );

  it("names an unknown key ends the run where errors are thrown", async () => {
    const agent = await agentWith(async () => new Command({ update: { nothing: 1 } }), { throwing: true });
    await expect(agent.invoke(go)).rejects.toMatchObject({ code: "unknown_state_key" });
  });

  it("is a list of pairs works as well", async () => {
    const agent = await agentWith(async () => new Command({ update: [["lastOpTime", "then"]] }));
    const result = await agent.invoke(go);
    expect(result).toMatchObject({ lastOpTime: "then" });
    expect(answerOf(result)?.text).toBe("Done.");
  });
});

describe("a Command for the graph around", () => {
  const parent: AgentInterceptor = async (request) =>
    new Command({
      graph: Command.PARENT,
      goto: "after",
      update: {
        messages: [new ToolMessage({ content: "handed over", tool_call_id: request.runtime.toolCallId ?? "" })],
      },
    });

  it.each([true, false])("is an error message where there is none (mcpMiddleware: %s)", async (guarded) => {
    const message = answerOf(await (await agentWith(parent, { guarded })).invoke(go));
    expect(message).toMatchObject({ status: "error", artifact: { error: { code: "no_parent_graph" } } });
    expect(message?.text).toContain("Leave out `graph`");
  });

  it.each([true, false])("reaches it where there is one (mcpMiddleware: %s)", async (guarded) => {
    const agent = await agentWith(parent, { guarded });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("agent", agent.graph, { ends: ["after"] })
      .addNode("after", () => ({ messages: [new HumanMessage("after")] }))
      .addEdge("__start__", "agent")
      .compile({ checkpointer: new MemorySaver() });
    const { messages } = await graph.invoke(go, { configurable: { thread_id: "t" } });
    expect(messages.map((message) => message.text)).toEqual(["go", "handed over", "after"]);
  });
});
