import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import {
  Command,
  type LangGraphRunnableConfig,
  MemorySaver,
  MessagesAnnotation,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { createClient } from "@tenon/client";
import { createServer } from "@tenon/server";
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
  toolCaller,
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

describe("a node that calls tools by itself", () => {
  const price: ScriptedTool = { run: ({ args }) => ({ text: `${args.of} costs 3`, structured: { price: 3 } }) };
  const plain: ScriptedTool = { run: () => ({ text: "done" }) };
  const broken: ScriptedTool = { run: () => ({ text: "out of order", isError: true }) };
  const State = new StateSchema({ of: z.string(), found: z.unknown().optional() });
  const thread = { configurable: { thread_id: "t" } };

  /** A graph of one node. */
  function oneNode(work: (state: { of: string }, config: LangGraphRunnableConfig) => Promise<unknown>) {
    return new StateGraph(State)
      .addNode("work", async (state, config) => ({ found: await work(state, config) }))
      .addEdge("__start__", "work")
      .compile({ checkpointer: new MemorySaver() });
  }

  it("gets the structured value, or the text where there is none", async () => {
    const call = await toolCaller(scriptedClient({ price, plain }));
    const graph = oneNode(async ({ of }, config) => [
      await call("mcp_shop_price", { of }, config),
      await call("mcp_shop_plain", {}, config),
    ]);
    expect((await invokeAgent(graph, { of: "tea" }, thread)).found).toEqual([{ price: 3 }, "done"]);
  });

  it("has its questions answered in the order they were asked, also two of one tool", async () => {
    const client = scriptedClient({ pay });
    const call = await toolCaller(client);
    const graph = oneNode(async (_, config) => [
      await call("mcp_shop_pay", { to: "bob" }, config),
      await call("mcp_shop_pay", { to: "eve" }, config),
    ]);
    await invokeAgent(graph, { of: "tea" }, thread);
    let result: { found?: unknown } = {};
    for (const who of ["bob", "eve"]) {
      const [question] = await openQuestions(graph, "t");
      expect(question).toMatchObject({ questions: { confirm: { message: `Pay ${who}?` } } });
      const resume = { [question!.id]: resumeValue(question!, yes) };
      result = await invokeAgent(graph, new Command({ resume }), thread);
    }
    expect(result.found).toEqual(["paid bob", "paid eve"]);
    expect(client.sent).toHaveLength(4);
  });

  it("gets a typed error for a failure, a name that there is not, and a Command", async () => {
    const send: AgentInterceptor = (request, next) =>
      request.name === "plain" ? Promise.resolve(new Command({ goto: "x" })) : next(request);
    const call = await toolCaller(scriptedClient({ plain, broken }, { interceptors: [send] }));
    const failing = (name: string) => oneNode((_, config) => call(name, {}, config)).invoke({ of: "x" }, thread);
    await expect(failing("mcp_shop_broken")).rejects.toMatchObject({ name: "ExecutionError", message: "out of order" });
    await expect(failing("mcp_shop_brokn")).rejects.toThrow('did you mean "mcp_shop_broken"?');
    await expect(failing("mcp_shop_plain")).rejects.toMatchObject({ code: "command_outcome" });
  });

  it("is told what to do when it calls a tool that asks without an id", async () => {
    await using server = createServer({ name: "desk", version: "1.0.0", logSink: () => {} });
    server.tool("sure", {}, async (_, ctx) => (await ctx.elicit("Sure?", z.boolean())).action);
    const { url } = await server.listen({ port: 0 });
    await using client = createClient({ servers: { desk: { url } }, elicitation: "interrupt" });
    const [tool] = await mcpTools(client, { toolErrors: "throw" });
    const graph = oneNode((_, config) => tool!.invoke({}, config));
    await expect(invokeAgent(graph, { of: "x" }, thread)).rejects.toMatchObject({
      code: "no_answerer",
      message: expect.stringContaining(
        "since it has no id. In a node of a graph with a checkpointer call it with toolCaller",
      ),
    });
    const call = await toolCaller(client);
    const unsaved = new StateGraph(State)
      .addNode("work", async (_, config) => ({ found: await call("mcp_desk_sure", {}, config) }))
      .addEdge("__start__", "work")
      .compile();
    await expect(unsaved.invoke({ of: "x" })).rejects.toMatchObject({ code: "no_checkpointer" });
  });

  it("and fails is named to new input, with what to do", async () => {
    const call = await toolCaller(scriptedClient({ price }));
    const graph = oneNode(async ({ of }, config) => {
      if (of === "") throw new Error("of what?");
      return call("mcp_shop_price", { of }, config);
    });
    await expect(invokeAgent(graph, { of: "" }, thread)).rejects.toThrow("of what?");
    await expect(invokeAgent(graph, { of: "tea" }, thread)).rejects.toMatchObject({
      code: "thread_waits",
      message: expect.stringMatching(/where work failed \(of what\?\).*updateState.*null as the input/),
      data: { next: ["work"], failed: ["work"] },
    });
    await graph.updateState(thread, { of: "tea" });
    expect((await invokeAgent(graph, null, thread)).found).toEqual({ price: 3 });
  });
});
