import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BaseCheckpointSaver, Command, MemorySaver, StateSchema } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { createClient } from "@tenon/client";
import { createServer } from "@tenon/server";
import { createAgent } from "langchain";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentInterceptor,
  contextMeta,
  contextOf,
  mcpMiddleware,
  mcpTools,
  type StreamEvent,
  stateByTrace,
  stateContext,
  streamRun,
  toolMessageOf,
} from "../src/index.ts";
import { callingModel } from "./scripted-model.ts";

const cleanups: Array<() => unknown> = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const contract = z.object({ user_id: z.string(), order: z.string().optional(), amount: z.number().optional() });
const KEY = "dev.tenon/context";

async function serve(name: string, got: unknown[]) {
  const server = createServer({ name, version: "1.0.0", logSink: () => {} });
  server.tool("look", {}, () => "looked");
  server.use(async (request, next) => {
    if (request.method === "tools/call") got.push(request.meta[KEY]);
    return next();
  });
  const { url, close } = await server.listen({ port: 0 });
  cleanups.push(
    () => server.close(),
    () => close(10),
  );
  return { url };
}

async function setUp(saver: BaseCheckpointSaver, calls: Parameters<typeof callingModel>, inner?: AgentInterceptor) {
  const sent: unknown[] = [];
  const elsewhere: unknown[] = [];
  const seen: unknown[] = [];
  const context = stateContext(contract, { fields: { user_id: (_, run) => (run as { userId: string }).userId } });
  const watch: AgentInterceptor = (request, next) => {
    seen.push(contextOf(request));
    return next(request);
  };
  const client = createClient({
    servers: { shop: await serve("shop", sent), other: await serve("other", elsewhere) },
    interceptors: [contextMeta(context, { servers: ["shop"] }), watch, ...(inner ? [inner] : [])],
  });
  cleanups.push(() => client.close());
  const agent = createAgent({
    model: callingModel(...calls),
    tools: await mcpTools(client),
    middleware: [context.middleware, mcpMiddleware()],
    stateSchema: new StateSchema({
      order: z.string().optional(),
      amount: z.unknown().optional(),
    }),
    contextSchema: z.object({ userId: z.string() }),
    checkpointer: saver,
  });
  const run = async (state: Record<string, unknown> = {}) => {
    const events: StreamEvent[] = [];
    const options = { threadId: "t", context: { userId: "ann" }, state, onError: () => {} };
    for await (const event of streamRun(agent, "go", options)) events.push(event);
    return events;
  };
  return { agent, client, elsewhere, run, seen, sent };
}

const look = { name: "mcp_shop_look" };

describe("an agent whose server wants to know who asks", () => {
  it("tells it with every call, tells nobody else, and the trace leads back to the saved state", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tenon-context-"));
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
    const saver = SqliteSaver.fromConnString(join(folder, "threads.sqlite"));
    cleanups.push(() => saver.db.close());
    const { elsewhere, run, seen, sent } = await setUp(saver, [look, { name: "mcp_other_look" }]);
    const events = await run({ order: "o1", amount: 5 });
    expect(events.at(-1)).toMatchObject({ state: "done" });
    const trace_id = expect.stringMatching(/^[0-9a-f]{32}$/);
    expect(sent).toEqual([{ user_id: "ann", order: "o1", amount: 5, trace_id }]);
    expect(elsewhere).toEqual([undefined]);
    expect(seen).toHaveLength(2);
    expect(seen).toContainEqual(sent[0]);
    const traceId = (sent[0] as { trace_id: string }).trace_id;
    const found = await stateByTrace(saver, traceId);
    expect(found).toMatchObject({ threadId: "t", values: { order: "o1", amount: 5 } });
    const messages = found?.values.messages as Array<{ type: string }>; // the agent's state
    expect(messages.map(({ type }) => type)).toEqual(["human", "ai"]); // as it was when the call was made
    expect(await stateByTrace(saver, traceId, { threadId: "other" })).toBeUndefined();
    expect(await stateByTrace(saver, "0".repeat(32))).toBeUndefined();
    await expect(stateByTrace(saver, "x")).rejects.toThrow("32 hexadecimal digits");
  });

  it("finds the state in memory too, a state of the same thread for each turn", async () => {
    const saver = new MemorySaver();
    const { run, sent } = await setUp(saver, [look]);
    await run({ amount: 1 });
    await run({ amount: 2 });
    for (const [i, amount] of [1, 2].entries()) {
      const { trace_id } = sent[i] as { trace_id: string };
      expect(await stateByTrace(saver, trace_id)).toMatchObject({ values: { amount } });
    }
  });

  it("a wrong value in the input stops the run before the model is asked", async () => {
    const { agent, run, sent } = await setUp(new MemorySaver(), [look]);
    const events = await run({ amount: "five" });
    expect(events.filter((event) => event.type === "error")).toMatchObject([
      { error: { name: "ContractError", code: "invalid_context_value", message: expect.stringContaining("amount") } },
    ]);
    expect(events.some((event) => event.type === "call-end")).toBe(false);
    expect(sent).toEqual([]);
    const rejected = agent.invoke(
      { messages: [], amount: "five" } as never,
      { configurable: { thread_id: "u" }, context: { userId: "ann" } } as never,
    );
    // LangChain wraps what middleware throws
    await expect(rejected).rejects.toMatchObject({ name: "ContractError", cause: { code: "invalid_context_value" } });
  });

  it.each([
    ["that is no number, which is never saved", Number.NaN, []],
    ["of the wrong kind, which stops the next step", "five", ["five"]],
  ])("a tool's update %s", async (_, amount, saved) => {
    const update: AgentInterceptor = async (request, next) => {
      const outcome = await next(request);
      if (!("isError" in outcome)) return outcome;
      return new Command({ update: { messages: [toolMessageOf(request, outcome)], amount } });
    };
    const { agent, run } = await setUp(new MemorySaver(), [look], update);
    const events = await run();
    expect(events.filter((event) => event.type === "error")).toMatchObject([
      { error: { name: "ContractError", message: expect.stringContaining("amount") } },
    ]);
    expect(events.at(-1)).toMatchObject({ type: "end", state: "failed" });
    const { values } = await agent.graph.getState({ configurable: { thread_id: "t" } });
    expect([values.amount].filter((value) => value !== undefined)).toEqual(saved);
  });

  it("a call that no agent makes goes as it is", async () => {
    const { client, sent } = await setUp(new MemorySaver(), []);
    await client.callTool("shop", "look");
    expect(sent).toEqual([undefined]);
  });
});
