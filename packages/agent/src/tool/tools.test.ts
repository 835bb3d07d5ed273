import { ToolMessage } from "@langchain/core/messages";
import { Command, MemorySaver } from "@langchain/langgraph";
import { ConnectionError, META } from "@tenon/core";
import { createAgent, HumanMessage } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type ScriptedTool, scriptedClient } from "../../test/scripted-client.ts";
import { callingModel } from "../../test/scripted-model.ts";
import { type AgentInterceptor, type mcpMiddleware, mcpTools } from "../index.ts";

const add: ScriptedTool = {
  schema: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true },
  run: ({ args }) => ({ text: String(Number(args.a) + Number(args.b)), structured: { sum: 3 }, meta: { k: 1 } }),
};

async function callOne(tool: ScriptedTool, args: Record<string, unknown>, interceptors: AgentInterceptor[] = []) {
  const client = scriptedClient({ tool }, { interceptors });
  const [mcp] = await mcpTools(client);
  const message: ToolMessage = await mcp!.invoke({ type: "tool_call", id: "c1", name: mcp!.name, args });
  return { client, message };
}

describe("tools of a catalog", () => {
  it("keep the catalog's names, the server's own schema object and where they come from", async () => {
    const client = scriptedClient({ add });
    const [tool] = await mcpTools(client, { servers: ["shop"] });
    expect(tool!.name).toBe("mcp_shop_add");
    expect(tool!.schema).toBe(add.schema);
    expect(tool!.metadata).toEqual({ mcp: { server: "shop", tool: "add", annotations: { readOnlyHint: true } } });
    expect(await mcpTools(client, { servers: ["other"] })).toEqual([]);
    // @ts-expect-error a typing error must be found at run time too
    await expect(mcpTools(client, { server: ["shop"] })).rejects.toThrow('did you mean "servers"');
  });

  it("answer with text for the model and structured content for the program", async () => {
    const { message } = await callOne(add, { a: 1, b: 2 });
    expect(message).toMatchObject({
      content: "3",
      status: "success",
      name: "mcp_shop_tool",
      tool_call_id: "c1",
      artifact: { structured: { sum: 3 }, meta: { k: 1 } },
    });
  });

  it("can be called outside an agent and return the text", async () => {
    const [tool] = await mcpTools(scriptedClient({ add }));
    expect(await tool!.invoke({ a: 1, b: 2 })).toBe("3");
    await expect(tool!.invoke({ a: 1 })).rejects.toMatchObject({ code: "invalid_arguments" });
  });

  it("never give the model an empty message", async () => {
    expect((await callOne({ run: () => ({}) }, {})).message.content).toBe("(no output)");
  });
});

describe("failures", () => {
  it("a tool's own error is a message with status error", async () => {
    const { message } = await callOne({ run: () => ({ text: "order not found", isError: true }) }, {});
    expect(message).toMatchObject({ content: "order not found", status: "error" });
  });

  it("a lost connection says that the call may have taken effect", async () => {
    const lost = () => {
      throw new ConnectionError("shop went away", { code: "lost", server: "shop", maybeExecuted: true });
    };
    const { message } = await callOne({ run: lost }, {});
    expect(message.status).toBe("error");
    expect(message.content).toBe(
      "shop went away The call may have taken effect on the server: do not repeat it blindly, check first.",
    );
    expect(message.artifact.error).toMatchObject({ code: "lost", maybeExecuted: true });
  });
});

describe("inside an agent", () => {
  it("interceptors see context, state, thread and call; progress and log go to the custom stream", async () => {
    const seen: unknown[] = [];
    const spy: AgentInterceptor<{ userId: string }, { messages: unknown[] }> = async (request, next) => {
      const { context, state, toolCallId, threadId, store } = request.runtime;
      seen.push({
        user: context?.userId,
        messages: state?.messages.length,
        extra: Object.keys(state ?? {}).includes("lg_tool_call"),
        toolCallId,
        threadId,
        store: store !== undefined,
      });
      return next(request);
    };
    const client = scriptedClient(
      {
        work: {
          run: (call) => {
            call.progress({ progress: 1, total: 2, percent: 50 });
            call.log({ level: "info", data: "half" });
            return { text: "ok" };
          },
        },
      },
      { interceptors: [spy as AgentInterceptor] },
    );
    const agent = createAgent({
      model: callingModel({ name: "mcp_shop_work" }),
      tools: await mcpTools(client),
      contextSchema: z.object({ userId: z.string() }),
      checkpointer: new MemorySaver(),
    });
    const chunks: unknown[] = [];
    const stream = await agent.stream(
      { messages: [new HumanMessage("go")] },
      { configurable: { thread_id: "t" }, context: { userId: "u1" }, streamMode: ["custom"] },
    );
    for await (const [, chunk] of stream) chunks.push(chunk);
    const source = { server: "shop", tool: "work", toolCallId: "offline_1_0" };
    expect(chunks).toEqual([
      { type: "mcp_progress", ...source, progress: 1, total: 2, percent: 50 },
      { type: "mcp_log", ...source, level: "info", data: "half" },
    ]);
    expect(seen).toEqual([
      { user: "u1", messages: 2, extra: false, toolCallId: "offline_1_0", threadId: "t", store: false },
    ]);
    expect(client.sent[0]?.meta[META.idempotencyKey]).toMatch(/^[\w-]{43}$/);
  });

  it("a cancelled run cancels the call", async () => {
    const stop = new AbortController();
    const client = scriptedClient({
      slow: {
        run: ({ signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
            stop.abort();
          }),
      },
    });
    const agent = createAgent({ model: callingModel({ name: "mcp_shop_slow" }), tools: await mcpTools(client) });
    await expect(agent.invoke({ messages: [new HumanMessage("go")] }, { signal: stop.signal })).rejects.toThrow();
    expect(client.sent[0]?.signal.aborted).toBe(true);
  });

  it("a goto without the middleware is reported, not ignored", async () => {
    const end: AgentInterceptor = async () => new Command({ goto: "__end__" });
    const client = scriptedClient({ add }, { interceptors: [end] });
    const model = callingModel({ name: "mcp_shop_add", args: { a: 1, b: 2 } });
    const run = async (middleware: ReturnType<typeof mcpMiddleware>[]) =>
      createAgent({ model, tools: await mcpTools(client), middleware }).invoke({ messages: [new HumanMessage("go")] });
    const without = (await run([])).messages.find((message) => ToolMessage.isInstance(message));
    expect(without?.text).toContain("Add mcpMiddleware()");
    expect(without).toMatchObject({ status: "error" });
  });

  it("an interceptor's own message gets the call's id and a status", async () => {
    const cached: AgentInterceptor = async () => new ToolMessage({ content: "cached", tool_call_id: "elsewhere" });
    const { message, client } = await callOne(add, { a: 1, b: 2 }, [cached]);
    expect(message).toMatchObject({ content: "cached", tool_call_id: "c1", status: "success" });
    expect(client.sent).toEqual([]);
  });
});
