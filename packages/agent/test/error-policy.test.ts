import { ToolMessage } from "@langchain/core/messages";
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { createClient } from "@tenon/client";
import { ConnectionError, ExecutionError, type TenonError } from "@tenon/core";
import { createServer, ToolError } from "@tenon/server";
import { AIMessage, createAgent, createMiddleware, HumanMessage } from "langchain";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { type AgentInterceptor, mcpMiddleware, mcpTools } from "../src/index.ts";
import type { ToolErrors } from "../src/tool/failures.ts";
import { callingModel } from "./scripted-model.ts";

const cleanups: Array<() => unknown> = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startShop() {
  const server = createServer({ name: "shop", version: "1.0.0", logSink: () => {} });
  server.tool("find", { input: z.object({ id: z.string() }) }, ({ id }) => {
    if (id === "o1") return "an order";
    throw new ToolError(`there is no order ${id}`);
  });
  const listening = await server.listen({ port: 0 });
  const close = async () => {
    await listening.close(10);
    await server.close();
  };
  cleanups.push(close);
  return { url: listening.url, close };
}

type Kind = "tool error" | "argument error" | "connection error";
const args: Record<Kind, Record<string, unknown>> = {
  "tool error": { id: "o9" },
  "argument error": { id: 7 },
  "connection error": { id: "o1" },
};
const shown: Record<Kind, RegExp> = {
  "tool error": /^there is no order o9$/,
  "argument error":
    /^The arguments do not fit tool "find" of server "shop"; nothing was sent\. .*\n- id: must be a string, got 7$/,
  "connection error": /shop/,
};
const thrown: Record<Kind, [new (...args: never[]) => TenonError, string | RegExp]> = {
  "tool error": [ExecutionError, "tool_error"],
  "argument error": [ExecutionError, "invalid_arguments"],
  "connection error": [ConnectionError, /unreachable|lost/],
};

/** A middleware of somebody else that wraps tool calls: with one of these, LangChain lets thrown errors end the run. */
const foreign = createMiddleware({ name: "Foreign", wrapToolCall: (request, handler) => handler(request) });
const middlewares = {
  "no middleware": () => [],
  mcpMiddleware: () => [mcpMiddleware()],
  "a foreign middleware": () => [foreign],
  "both, ours outermost": () => [mcpMiddleware(), foreign],
  "both, ours innermost": () => [foreign, mcpMiddleware()],
};

async function agentFor(
  kind: Kind,
  toolErrors: ToolErrors | undefined,
  middleware: ReturnType<typeof mcpMiddleware>[],
) {
  const shop = await startShop();
  const client = createClient({ servers: { shop: { url: shop.url } }, elicitation: "interrupt" });
  cleanups.push(() => client.close());
  const tools = await mcpTools(client, toolErrors ? { toolErrors } : {});
  if (kind === "connection error") await shop.close();
  const model = callingModel({ name: "mcp_shop_find", args: args[kind] });
  return { agent: createAgent({ model, tools, middleware }), model };
}

const go = { messages: [new HumanMessage("go")] };
const kinds = Object.keys(args) as Kind[]; // its own keys
const cells = Object.entries(middlewares).flatMap(([name, make]) => kinds.map((kind) => ({ name, make, kind })));

describe("a failed call that is to be returned", () => {
  it.each(cells)("with $name: a $kind is a short message and the run goes on", async ({ make, kind }) => {
    const { agent, model } = await agentFor(kind, "return", make());
    const { messages } = await agent.invoke(go);
    const message = messages.find((one) => ToolMessage.isInstance(one));
    expect(message).toMatchObject({ status: "error", name: "mcp_shop_find" });
    expect(message?.text).toMatch(shown[kind]);
    expect(message?.text).not.toMatch(/\n\s+at |node_modules|file:|\.ts:/);
    expect(model.turns).toHaveLength(2);
  });

  it("is a message also when nobody said what to do with it", async () => {
    for (const kind of kinds) {
      const { agent } = await agentFor(kind, undefined, [foreign]);
      expect((await agent.invoke(go)).messages.at(-1)?.text).toMatch(/^done: error=/);
    }
  });

  it("stays one where the middleware throws what has no say of its own", async () => {
    const { agent } = await agentFor("tool error", "return", [mcpMiddleware({ toolErrors: "throw" })]);
    expect((await agent.invoke(go)).messages.at(-1)?.text).toBe("done: error=there is no order o9");
  });
});

describe("a failed call that is to be thrown", () => {
  it.each(cells)("with $name: a $kind ends the run with its own error", async ({ make, kind }) => {
    const { agent, model } = await agentFor(kind, "throw", make());
    const error = await agent.invoke(go).catch((reason: unknown) => reason);
    const [type, code] = thrown[kind];
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ code: expect.stringMatching(code) });
    expect(error).toMatchObject({ message: expect.stringMatching(shown[kind]) });
    expect(model.turns).toHaveLength(1);
  });

  it.each(kinds)("by the middleware: a %s ends the run", async (kind) => {
    const { agent } = await agentFor(kind, undefined, [mcpMiddleware({ toolErrors: "throw" }), foreign]);
    await expect(agent.invoke(go)).rejects.toBeInstanceOf(thrown[kind][0]);
  });

  it("ends a streamed run as well", async () => {
    const { agent } = await agentFor("tool error", "throw", []);
    const read = async () => {
      for await (const _chunk of await agent.stream(go, { streamMode: ["updates", "tools", "messages"] }));
    };
    await expect(read()).rejects.toBeInstanceOf(ExecutionError);
  });

  it("in a graph of one's own is left to its tool node", async () => {
    const shop = await startShop();
    const client = createClient({ servers: { shop: { url: shop.url } } });
    cleanups.push(() => client.close());
    const call = { name: "mcp_shop_find", args: { id: "o9" }, id: "c1", type: "tool_call" as const };
    const tools = await mcpTools(client, { toolErrors: "throw" });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("plan", () => ({ messages: [new AIMessage({ content: "", tool_calls: [call] })] }))
      .addNode("tools", new ToolNode(tools, { handleToolErrors: false }))
      .addEdge("__start__", "plan")
      .addEdge("plan", "tools")
      .compile();
    await expect(graph.invoke(go)).rejects.toThrow("there is no order o9");
  });

  it("outside an agent always is", async () => {
    const shop = await startShop();
    const client = createClient({ servers: { shop: { url: shop.url } } });
    cleanups.push(() => client.close());
    const [find] = await mcpTools(client, { toolErrors: "return" });
    await expect(find?.invoke({ id: "o9" })).rejects.toMatchObject({ code: "tool_error" });
  });

  it("cannot be asked for in other words", async () => {
    const client = createClient({ servers: {} });
    // @ts-expect-error not one of the two
    await expect(mcpTools(client, { toolErrors: "raise" })).rejects.toThrow('must be "return" or "throw"');
  });
});

describe("an interceptor that breaks", () => {
  const broken: AgentInterceptor = async () => {
    throw new TypeError("a bug");
  };
  it.each(Object.entries(middlewares))("with %s: does not end a run whose errors are returned", async (_name, make) => {
    const shop = await startShop();
    const client = createClient({ servers: { shop: { url: shop.url } }, interceptors: [broken] });
    cleanups.push(() => client.close());
    const model = callingModel({ name: "mcp_shop_find", args: { id: "o1" } });
    const run = async (toolErrors: ToolErrors) =>
      createAgent({ model, tools: await mcpTools(client, { toolErrors }), middleware: make() }).invoke(go);
    expect((await run("return")).messages.at(-1)?.text).toBe("done: error=mcp_shop_find failed: a bug");
    await expect(run("throw")).rejects.toBeInstanceOf(TypeError);
  });
});
