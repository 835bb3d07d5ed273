import { MemorySaver, StateSchema } from "@langchain/langgraph";
import { type ClientEvents, type ContractEvent, createClient, type ServerContract } from "@tenon/client";
import { newContractKey, publicContractKey } from "@tenon/core/contract";
import { createServer } from "@tenon/server";
import { createAgent } from "langchain";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentInterceptor,
  contextMeta,
  mcpMiddleware,
  mcpTools,
  type StreamEvent,
  stateContext,
  streamRun,
} from "../src/index.ts";
import { callingModel } from "./scripted-model.ts";

const cleanups: Array<() => unknown> = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const schema = z.object({
  user_id: z.string(),
  session_id: z.string().optional(),
  amount: z.number().optional(),
  trace_id: z.string().optional(),
});

/** A server that asks who calls, and what came to it. */
async function serve(keys: ReturnType<typeof newContractKey>[]) {
  const got: unknown[] = [];
  let requests = 0;
  const server = createServer({ name: "desk", version: "1.0.0", logSink: () => {}, contract: { schema, keys } });
  server.tool("look", {}, (_, ctx) => {
    got.push(ctx.context);
    return "looked";
  });
  server.use((request, next) => {
    if (request.method === "tools/call") requests++;
    return next();
  });
  const { url, close } = await server.listen({ port: 0 });
  cleanups.push(
    () => server.close(),
    () => close(10),
  );
  return { url, got, calls: () => requests };
}

function open(url: string, contract: ServerContract, events: ClientEvents = {}, interceptors: AgentInterceptor[] = []) {
  const client = createClient({ servers: { desk: { url, contract } }, events, interceptors });
  cleanups.push(() => client.close());
  return client;
}

describe("a client and a server with a contract", () => {
  it("change to the next key in the middle of a thousand calls, and none fails", async () => {
    const key = newContractKey({ kid: "now", alg: "EdDSA" });
    const at = new Date(Date.now() + 1_000).toISOString();
    const next = newContractKey({ kid: "next", alg: "EdDSA", activeFrom: at });
    const { url, got } = await serve([key, next]);
    const told: ContractEvent[] = [];
    const events: ClientEvents = { onContract: (event) => void told.push(event) };
    const keys = [key, next].map(publicContractKey);
    const client = open(url, { keys, context: { user_id: "ann", session_id: "s1" } }, events);
    const before = performance.now();
    let calls = 0;
    const worker = async () => {
      while (calls++ < 1_000) {
        const outcome = await client.callTool("desk", "look");
        expect(outcome).toMatchObject({ isError: false });
        // spread over the change, however fast the machine is
        if (calls % 10 === 0 && performance.now() - before < 1_500) await new Promise((go) => setTimeout(go, 30));
      }
    };
    await client.callTool("desk", "look");
    const first = client.servers()[0]?.contract?.nextRotation;
    await Promise.all(Array.from({ length: 10 }, worker));
    expect(got).toHaveLength(1_001);
    expect(told.map(({ accepted }) => accepted)).toEqual(["0.4.2", "0.4.2"]);
    expect(first).toBe(at);
    expect(client.servers()[0]?.contract).toMatchObject({ signed: true, serverId: "desk" });
    expect(client.servers()[0]?.contract?.nextRotation).not.toBe(at);
    expect(client.servers()[0]?.contract).not.toHaveProperty("drift");
    const last = await client.getContext("desk", "s1");
    expect(last).toEqual({ context: { user_id: "ann", session_id: "s1" }, expiresAt: expect.stringContaining("T") });
  }, 20_000);

  it("do not begin without the key that the client has", async () => {
    const { url, calls } = await serve([newContractKey({ kid: "k", alg: "HS256" })]);
    const client = open(url, { keys: [newContractKey({ kid: "k", alg: "HS256" })], context: { user_id: "ann" } });
    await expect(client.callTool("desk", "look")).rejects.toMatchObject({ code: "signature" });
    expect(calls()).toBe(0);
  });
});

describe("an agent whose server has a contract", () => {
  async function setUp() {
    const key = newContractKey({ kid: "k", alg: "HS256" });
    const server = await serve([key]);
    // the schema is what the server announces
    const context = stateContext(z.toJSONSchema(schema) as Parameters<typeof stateContext>[0]);
    const client = open(server.url, { keys: [key] }, {}, [contextMeta(context, { servers: ["desk"] })]);
    const agent = createAgent({
      model: callingModel({ name: "mcp_desk_look" }),
      tools: await mcpTools(client),
      middleware: [mcpMiddleware()],
      stateSchema: new StateSchema({ user_id: z.string().optional(), amount: z.unknown().optional() }),
      checkpointer: new MemorySaver(),
    });
    const run = async (state: Record<string, unknown>) => {
      const events: StreamEvent[] = [];
      for await (const event of streamRun(agent, "go", { threadId: "t", state, onError: () => {} })) events.push(event);
      return events;
    };
    return { ...server, run };
  }

  it("has its state go to the server with each call, as far as the contract declares it", async () => {
    const { run, got } = await setUp();
    expect((await run({ user_id: "ann", amount: 5 })).at(-1)).toMatchObject({ state: "done" });
    expect(got).toEqual([{ user_id: "ann", amount: 5, trace_id: expect.stringMatching(/^[0-9a-f]{32}$/) }]);
  });

  it.each([
    ["lacks a value", {}, "missing_context_field", "user_id"],
    ["has a wrong one", { user_id: "ann", amount: "5" }, "invalid_context_value", "amount"],
  ])("stops before anything is sent when its state %s, and says which", async (_, state, code, field) => {
    const { run, calls } = await setUp();
    const text = JSON.stringify(await run(state));
    expect(text).toContain(code);
    expect(text).toContain(field);
    expect(calls()).toBe(0);
  });
});
