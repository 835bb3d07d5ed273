import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command, MemorySaver, MessagesAnnotation, StateGraph, StateSchema } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentInterceptor,
  type Answer,
  invokeAgent,
  mcpTools,
  openQuestions,
  resumeValue,
  runInteractive,
  streamRun,
} from "../src/index.ts";
import { type ScriptedClient, type ScriptedTool, scriptedClient, yesNo } from "./scripted-client.ts";

const pay: ScriptedTool = {
  run: ({ args, answers }) =>
    answers ? { text: `paid ${args.to}` } : { ask: { confirm: yesNo(`Pay ${args.to}?`) }, state: String(args.to) },
};
const yes: Answer = { answers: { confirm: { action: "accept", content: { ok: true } } } };

/** A graph without createAgent: LangGraph's own tool node, which runs all calls in one task. */
async function ownGraph(client: ScriptedClient, ...to: string[]) {
  const tools = await mcpTools(client);
  return new StateGraph(MessagesAnnotation)
    .addNode("plan", () => ({
      messages: [
        new AIMessage({
          content: "",
          tool_calls: to.map((name, i) => ({ name: "mcp_shop_pay", args: { to: name }, id: `c${i}` })),
        }),
      ],
    }))
    .addNode("tools", new ToolNode(tools), { ends: ["later", "__end__"] })
    .addNode("later", () => ({ messages: [new AIMessage("later")] }))
    .addEdge("__start__", "plan")
    .addEdge("plan", "tools")
    .compile({ checkpointer: new MemorySaver() });
}

describe("in a graph of one's own", () => {
  it("a question pauses and resumes, each leg sent once", async () => {
    const client = scriptedClient({ pay });
    const graph = await ownGraph(client, "bob");
    const result = await runInteractive(graph, "go", { threadId: "t", ask: () => yes });
    expect(result.reply).toBe("paid bob");
    expect(client.sent).toHaveLength(2);
  });

  it("parallel questions of one task are answered with what was asked, never crossed", async () => {
    const client = scriptedClient({ pay });
    const graph = await ownGraph(client, "bob", "eve");
    const result = await runInteractive(graph, "go", { threadId: "t", ask: () => yes });
    expect(result.messages.filter((message) => ToolMessage.isInstance(message)).map((message) => message.text)).toEqual(
      ["paid bob", "paid eve"],
    );
    expect(client.sent.filter((leg) => leg.answers).every((leg) => leg.state === leg.args.to)).toBe(true);
    expect(await openQuestions(graph, "t")).toEqual([]);
  });

  it("a tool that a node calls goes with the node's state and waits for its answer", async () => {
    const states: unknown[] = [];
    const watch: AgentInterceptor = (request, next) => {
      states.push(request.runtime.state);
      return next(request);
    };
    const client = scriptedClient({ pay }, { interceptors: [watch] });
    const [tool] = await mcpTools(client);
    const State = new StateSchema({ to: z.string(), said: z.string().optional() });
    const graph = new StateGraph(State)
      .addNode("pay", async ({ to }, config) => {
        const message = await tool!.invoke({ type: "tool_call", id: "pay", name: tool!.name, args: { to } }, config);
        return { said: message.text };
      })
      .addEdge("__start__", "pay")
      .compile({ checkpointer: new MemorySaver() });
    const config = { configurable: { thread_id: "t" } };
    await invokeAgent(graph, { to: "bob" }, config);
    const [question] = await openQuestions(graph, "t");
    const resume = { [question!.id]: resumeValue(question!, yes) };
    expect(await invokeAgent(graph, new Command({ resume }), config)).toMatchObject({ said: "paid bob" });
    expect(client.sent).toHaveLength(2);
    expect(states).toEqual([{ to: "bob" }, { to: "bob" }]);
  });

  it("is told as a stream, from the question to the end", async () => {
    const graph = await ownGraph(scriptedClient({ pay }), "bob");
    const types: string[] = [];
    const answers = { confirm: { action: "accept" as const, content: { ok: true } } };
    let id = "";
    for await (const event of streamRun(graph, "go", { threadId: "t" })) {
      types.push(event.type);
      if (event.type === "question") id = event.question.id;
    }
    for await (const event of streamRun(graph, { resume: [{ id, answers }] }, { threadId: "t" })) {
      types.push(event.type);
      if (event.type === "end") expect(event).toMatchObject({ state: "done", reply: "paid bob" });
    }
    expect(types).toEqual("run-start call-start call-end tool-start question end run-start tool-end end".split(" "));
  });

  it("is continued at every place where it stops by itself, before a message is sent", async () => {
    const say = (text: string) => () => ({ messages: [new AIMessage(text)] });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("a", say("a"))
      .addNode("b", say("b"))
      .addNode("c", say("c"))
      .addEdge("__start__", "a")
      .addEdge("a", "b")
      .addEdge("b", "c")
      .compile({ checkpointer: new MemorySaver(), interruptBefore: ["b", "c"] });
    const said = async () => {
      const { values } = await graph.getState({ configurable: { thread_id: "t" } });
      return values.messages.map(({ text }: BaseMessage) => text).join(" ");
    };
    for await (const event of streamRun(graph, "one", { threadId: "t" })) expect(event.type).not.toBe("error");
    expect(await said()).toBe("one a");
    for await (const event of streamRun(graph, "two", { threadId: "t" })) expect(event.type).not.toBe("error");
    expect(await said()).toBe("one a b c two a");
    await runInteractive(graph, "three", { threadId: "t", ask: () => undefined });
    expect(await said()).toBe("one a b c two a b c three a b c");
  });

  it("a goto goes to the graph's own steps", async () => {
    const later: AgentInterceptor = async () => new Command({ goto: "later" });
    const client = scriptedClient({ pay }, { interceptors: [later] });
    const result = await (await ownGraph(client, "bob")).invoke(
      { messages: [new HumanMessage("go")] },
      { configurable: { thread_id: "t" } },
    );
    expect(result.messages.map((message) => message.text)).toEqual(["go", "", "Done.", "later"]);
  });
});
