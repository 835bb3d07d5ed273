import { ToolMessage } from "@langchain/core/messages";
import { Command, MemorySaver, StateSchema } from "@langchain/langgraph";
import { META } from "@tenon/core";
import { createAgent, createMiddleware, HumanMessage, humanInTheLoopMiddleware } from "langchain";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { type ScriptedTool, scriptedClient, yesNo } from "../../test/scripted-client.ts";
import { callingModel } from "../../test/scripted-model.ts";
import {
  type AgentInterceptor,
  type Answer,
  approvals,
  type InteractiveOptions,
  mcpMiddleware,
  mcpTools,
  OfflineModel,
  openQuestions,
  type Question,
  type RunEvent,
  resumeValue,
  runInteractive,
} from "../index.ts";

const pay: ScriptedTool = {
  schema: { type: "object", properties: { to: { type: "string" } } },
  run: ({ args, answers, progress, log }) => {
    if (!answers) return { ask: { confirm: yesNo(`Pay ${args.to}?`) }, state: "s" };
    progress({ progress: 1, total: 1, percent: 100 });
    log({ level: "info", data: "paying" });
    return { text: `paid ${args.to}` };
  },
};
const refund: ScriptedTool = { annotations: { destructiveHint: true }, run: () => ({ text: "refunded" }) };
const echo: ScriptedTool = { run: () => ({ text: "echo" }) };
const payTo = (to: string) => ({ name: "mcp_shop_pay", args: { to } });
const yes: Answer = { answers: { confirm: { action: "accept", content: { ok: true } } } };
const approve: Answer = { decisions: [{ type: "approve" }] };
const answering = (question: Question): Answer => (question.kind === "approval" ? approve : yes);

async function setUp(...calls: Parameters<typeof callingModel>) {
  const client = scriptedClient({ pay, refund, echo });
  const tools = await mcpTools(client);
  const model = callingModel(...calls);
  const agent = createAgent({
    model,
    tools,
    middleware: [mcpMiddleware(), approvals(tools)],
    checkpointer: new MemorySaver(),
  });
  const drive = (input: Parameters<typeof runInteractive>[1], options: Partial<InteractiveOptions> = {}) =>
    runInteractive(agent, input, { threadId: "t", ask: answering, ...options });
  return { agent, client, model, drive };
}

describe("a message that is sent again", () => {
  const message = () => ({ messages: [new HumanMessage({ id: "m", content: "plain hello" })] });

  it("has one reply, although its first sending was cut and is continued by the second", async () => {
    const { agent, model, drive } = await setUp();
    const cut = { configurable: { thread_id: "t" }, interruptBefore: ["model_request"] };
    await agent.invoke(message(), cut);
    expect(model.turns).toHaveLength(0);
    expect(await drive(message())).toMatchObject({ status: "done", reply: "done: " });
    const { values } = await drive(message());
    expect((values.messages as { type: string }[]).map(({ type }) => type)).toEqual(["human", "ai"]); // createAgent's state
    expect(model.turns).toHaveLength(1);
  });

  it("after a question that was open is not sent a second time either, and another text under its id is", async () => {
    const { client, model, drive } = await setUp({ name: "mcp_shop_refund" });
    const go = { messages: [new HumanMessage({ id: "m", content: "go" })] };
    await drive(go, { ask: () => undefined });
    expect((await drive(go)).reply).toBe("done: success=refunded");
    expect(client.sent).toHaveLength(1);
    const turns = model.turns.length;
    await drive(message());
    expect(model.turns).toHaveLength(turns + 1);
  });
});

describe("a conversation", () => {
  it("is driven through approvals and questions to the reply, and every event is said once", async () => {
    const events: RunEvent[] = [];
    const { drive, client } = await setUp({ name: "mcp_shop_refund" }, payTo("bob"));
    const result = await drive("go", { onEvent: (event) => events.push(event) });
    expect(result).toMatchObject({
      status: "done",
      questions: [],
      reply: "done: success=refunded | success=paid bob",
    });
    expect(result.messages.map((message) => message.type)).toEqual(["human", "ai", "tool", "tool", "ai"]);
    expect(client.sent).toHaveLength(3);
    const of = <T extends RunEvent["type"]>(type: T) =>
      events.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);
    expect(of("question").map((event) => event.question.kind)).toEqual(["approval", "elicitation"]);
    expect(of("tool-start").map(({ name, server, tool, args }) => ({ name, server, tool, args }))).toEqual([
      { name: "mcp_shop_refund", server: "shop", tool: "refund", args: {} },
      { name: "mcp_shop_pay", server: "shop", tool: "pay", args: { to: "bob" } },
    ]);
    expect(of("tool-end").map(({ status, text }) => [status, text])).toEqual([
      ["success", "refunded"],
      ["success", "paid bob"],
    ]);
    expect(of("progress")).toEqual([
      { type: "progress", server: "shop", tool: "pay", toolCallId: "offline_1_1", progress: 1, total: 1, percent: 100 },
    ]);
    expect(of("log")).toMatchObject([{ level: "info", data: "paying", toolCallId: "offline_1_1" }]);
    const deltas = of("text").map((event) => event.delta);
    expect(deltas.join("")).toBe(result.reply);
    expect(deltas.length).toBeGreaterThan(2);
  });

  it("goes on with messages, further state and a second turn", async () => {
    const client = scriptedClient({ echo });
    const agent = createAgent({
      model: callingModel(),
      tools: await mcpTools(client),
      stateSchema: new StateSchema({ shop: z.string().default("") }),
      checkpointer: new MemorySaver(),
    });
    const base = { threadId: "t", ask: answering };
    const first = await runInteractive(
      agent,
      { messages: [new HumanMessage("plain a")] },
      { ...base, state: { shop: "x" } },
    );
    expect(first.values.shop).toBe("x");
    const second = await runInteractive(agent, "plain b", base);
    expect(second.messages.map((message) => message.text)).toEqual(["plain b", "done: "]);
  });

  it("shows the tool's words when a tool ended the run", async () => {
    const end: AgentInterceptor = async (request) =>
      new Command({
        update: { messages: [new ToolMessage({ content: "bye", tool_call_id: request.runtime.toolCallId ?? "" })] },
        goto: "__end__",
      });
    const agent = createAgent({
      model: callingModel({ name: "mcp_shop_echo" }),
      tools: await mcpTools(scriptedClient({ echo }, { interceptors: [end] })),
      middleware: [mcpMiddleware()],
      checkpointer: new MemorySaver(),
    });
    expect(await runInteractive(agent, "go", { threadId: "t", ask: answering })).toMatchObject({ reply: "bye" });
  });
});

describe("a question left open", () => {
  it("pauses; the next call asks it first and then sends its own input", async () => {
    const { drive, client } = await setUp(payTo("bob"));
    const paused = await drive("go", { ask: () => undefined });
    expect(paused).toMatchObject({ status: "paused", reply: "", questions: [{ kind: "elicitation", tool: "pay" }] });
    const order: string[] = [];
    const result = await drive("plain next", {
      ask: (question) => {
        order.push(question.kind);
        return answering(question);
      },
    });
    expect(order).toEqual(["elicitation"]);
    expect(result.messages.map((message) => message.text)).toEqual([
      "paid bob",
      "done: success=paid bob",
      "plain next",
      "done: ",
    ]);
    expect(client.sent).toHaveLength(2);
  });

  it("several are asked one by one and resumed together", async () => {
    const { drive, client } = await setUp(payTo("bob"), payTo("eve"));
    let asking = 0;
    const ask = vi.fn(async (question: Question) => {
      asking += 1;
      expect(asking).toBe(1);
      expect(client.sent).toHaveLength(2);
      await new Promise((resolve) => setTimeout(resolve, 5));
      asking -= 1;
      return answering(question);
    });
    const result = await drive("go", { ask });
    expect(ask).toHaveBeenCalledTimes(2);
    expect(result.reply).toBe("done: success=paid bob | success=paid eve");
  });

  it("an answer given before a pause is not lost", async () => {
    const { drive, client } = await setUp(payTo("bob"), payTo("eve"));
    let asked = 0;
    const paused = await drive("go", { ask: (question) => (asked++ === 0 ? answering(question) : undefined) });
    expect(paused.status).toBe("paused");
    expect(paused.questions).toHaveLength(1);
    expect(client.sent.filter((leg) => leg.answers)).toHaveLength(1);
    expect((await drive(undefined)).reply).toBe("done: success=paid bob | success=paid eve");
    expect(client.sent).toHaveLength(4);
  });

  it("answered elsewhere meanwhile: the own answer is dropped and the run goes on", async () => {
    const { agent, drive, client } = await setUp(payTo("bob"));
    const events: RunEvent[] = [];
    const result = await drive("go", {
      onEvent: (event) => events.push(event),
      ask: async (question) => {
        const resume = { [question.id]: resumeValue(question, yes) };
        await agent.invoke(new Command({ resume }), { configurable: { thread_id: "t" } });
        return { answers: { confirm: { action: "decline" } } };
      },
    });
    expect(events.filter((event) => event.type === "superseded")).toHaveLength(1);
    expect(result).toMatchObject({ status: "done", reply: "done: success=paid bob" });
    expect(client.sent).toHaveLength(2);
  });

  it("an answer that cannot be used is asked for again with the reason", async () => {
    const { drive } = await setUp(payTo("bob"));
    const errors: Array<string | undefined> = [];
    const result = await drive("go", {
      ask: (question) => {
        errors.push(question.error);
        return errors.length === 1 ? { answers: {} } : yes;
      },
    });
    expect(errors).toEqual([undefined, expect.stringContaining("cannot be used")]);
    expect(result.reply).toBe("done: success=paid bob");
  });

  it("an answer of the wrong kind is an error of the program", async () => {
    const { drive } = await setUp(payTo("bob"));
    await expect(drive("go", { ask: () => approve })).rejects.toMatchObject({ code: "answer_kind" });
  });
});

interface AgentValues {
  readonly messages?: readonly { readonly text: string }[];
}

describe("a run that was cut", () => {
  it("is continued before new input is sent", async () => {
    const client = scriptedClient({ echo });
    const state = { broken: true };
    const model = new OfflineModel({
      reply: ({ step, text }) => {
        if (state.broken && step === 1) throw new Error("the line went dead");
        return step === 0 && text === "go"
          ? { calls: [{ name: "mcp_shop_echo", args: {} }] }
          : { text: `end of ${text}` };
      },
    });
    const agent = createAgent({ model, tools: await mcpTools(client), checkpointer: new MemorySaver() });
    const options = { threadId: "t", ask: answering };
    await expect(runInteractive(agent, "go", options)).rejects.toThrow("the line went dead");
    state.broken = false;
    const result = await runInteractive(agent, "hello", options);
    expect(result.messages.map((message) => message.text)).toEqual(["end of go", "hello", "end of hello"]);
    expect(client.sent).toHaveLength(1);
  });

  it("wherever the saver failed is continued to its end, and each call is made once", async () => {
    /** Fails at the n-th checkpoint: what the step before it came to is saved already. */
    class FailingSaver extends MemorySaver {
      left = Number.POSITIVE_INFINITY;
      override put(...args: Parameters<MemorySaver["put"]>): ReturnType<MemorySaver["put"]> {
        this.left -= 1;
        return this.left === 0 ? Promise.reject(new Error("the database went away")) : super.put(...args);
      }
    }
    let failed = 0;
    for (let n = 1; failed === n - 1; n += 1) {
      const client = scriptedClient({ refund });
      const tools = await mcpTools(client);
      const checkpointer = new FailingSaver();
      const agent = createAgent({
        model: callingModel({ name: "mcp_shop_refund" }),
        tools,
        middleware: [mcpMiddleware(), approvals(tools)],
        checkpointer,
      });
      const drive = (input?: string) => runInteractive(agent, input, { threadId: "t", ask: answering });
      checkpointer.left = n;
      const first = await drive("go").catch((error: unknown) => error);
      if (!(first instanceof Error)) break;
      failed += 1;
      const saved = async () => {
        // the state of an agent whose middleware is known at run time only
        const { values } = (await agent.getState({ configurable: { thread_id: "t" } })) as { values: AgentValues };
        return values.messages ?? [];
      };
      const result = await drive((await saved()).length > 0 ? undefined : "go"); // the very first one kept nothing
      expect(result.status, `after failure ${n}`).toBe("done");
      expect((await saved()).at(-1)?.text, `after failure ${n}`).toBe("done: success=refunded");
      expect(new Set(client.sent.map(({ meta }) => meta?.[META.idempotencyKey])).size, `after failure ${n}`).toBe(1);
    }
    expect(failed).toBeGreaterThan(4);
  });

  it("by a signal that lives as long as the person talks leaves nothing on it after each turn", async () => {
    const { drive } = await setUp({ name: "mcp_shop_echo" });
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, "addEventListener");
    const removed = vi.spyOn(signal, "removeEventListener");
    for (let turn = 0; turn < 3; turn += 1) await drive("go", { signal });
    expect(added).toHaveBeenCalled();
    expect(removed).toHaveBeenCalledTimes(added.mock.calls.length);
  });
  it("by the person's signal stays on the thread", async () => {
    const stop = new AbortController();
    const { drive } = await setUp(payTo("bob"));
    const ask = () => {
      stop.abort();
      return yes;
    };
    await expect(drive("go", { ask, signal: stop.signal })).rejects.toThrow();
    expect((await drive(undefined)).reply).toBe("done: success=paid bob");
  });
});

describe("a run that dies while the server acts on an answer", () => {
  it("asks again, and what is sent again carries the same key", async () => {
    const stop = new AbortController();
    const client = scriptedClient({
      pay: {
        run: (sent) => {
          if (sent.answers && !stop.signal.aborted) {
            stop.abort();
            throw new Error("cut off");
          }
          return pay.run(sent);
        },
      },
    });
    const tools = await mcpTools(client);
    const model = callingModel(payTo("bob"));
    const agent = createAgent({ model, tools, middleware: [mcpMiddleware()], checkpointer: new MemorySaver() });
    const options = { threadId: "t", ask: answering };
    await expect(runInteractive(agent, "go", { ...options, signal: stop.signal })).rejects.toThrow();
    const result = await runInteractive(agent, undefined, options);
    expect(result.reply).toBe("done: success=paid bob");
    expect(client.sent.map((leg) => Boolean(leg.answers))).toEqual([false, true, true]);
    expect(new Set(client.sent.map((leg) => leg.meta[META.idempotencyKey])).size).toBe(1);
  });
});

describe("runs on one thread", () => {
  it("happen inside `exclusive`, people are asked outside of it", async () => {
    const { drive } = await setUp(payTo("bob"));
    let held = 0;
    let holds = 0;
    await drive("go", {
      exclusive: async (work) => {
        held += 1;
        holds += 1;
        try {
          return await work();
        } finally {
          held -= 1;
        }
      },
      ask: (question) => {
        expect(held).toBe(0);
        return answering(question);
      },
    });
    expect(holds).toBe(2);
  });
});

describe("other agents", () => {
  it("LangChain's own approval middleware is understood", async () => {
    const client = scriptedClient({ echo });
    const agent = createAgent({
      model: callingModel({ name: "mcp_shop_echo" }),
      tools: await mcpTools(client),
      middleware: [humanInTheLoopMiddleware({ interruptOn: { mcp_shop_echo: true } })],
      checkpointer: new MemorySaver(),
    });
    const edit: Answer = { decisions: [{ type: "edit", editedAction: { args: { n: 1 } } }] };
    const result = await runInteractive(agent, "go", { threadId: "t", ask: () => edit });
    expect(result.reply).toBe("done: success=echo");
    expect(client.sent[0]?.args).toEqual({ n: 1 });
  });

  it("an interrupt of another kind, a missing checkpointer or thread are named", async () => {
    const stop = createMiddleware({ name: "stop", beforeModel: (_state, runtime) => void runtime.interrupt?.("own") });
    const model = callingModel();
    const own = createAgent({ model, tools: [], middleware: [stop], checkpointer: new MemorySaver() });
    const options = { threadId: "t", ask: answering };
    await expect(runInteractive(own, "go", options)).rejects.toMatchObject({ code: "unknown_interrupt" });
    const unsaved = createAgent({ model, tools: [] });
    await expect(runInteractive(unsaved, "go", options)).rejects.toMatchObject({ code: "no_checkpointer" });
    await expect(openQuestions(unsaved, "t")).rejects.toMatchObject({ code: "no_checkpointer" });
    await expect(runInteractive(own, "go", { ...options, threadId: "" })).rejects.toMatchObject({ code: "no_thread" });
  });
});
