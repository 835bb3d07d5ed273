import { Command, MemorySaver } from "@langchain/langgraph";
import { openMemory } from "@tenon/store";
import { createAgent } from "langchain";
import { describe, expect, it } from "vitest";
import { type ScriptedTool, scriptedClient, yesNo } from "../../test/scripted-client.ts";
import { callingModel } from "../../test/scripted-model.ts";
import {
  type Answer,
  approvals,
  mcpMiddleware,
  mcpTools,
  OfflineModel,
  openQuestions,
  type Question,
  resumeValue,
  type StreamEvent,
  type StreamInteractiveOptions,
  streamInteractive,
  streamRun,
} from "../index.ts";

const pay: ScriptedTool = {
  schema: { type: "object", properties: { to: { type: "string" } } },
  run: ({ args, answers }) =>
    answers ? { text: `paid ${args.to}` } : { ask: { confirm: yesNo(`Pay ${args.to}?`) }, state: "s" },
};
const refund: ScriptedTool = { annotations: { destructiveHint: true }, run: () => ({ text: "refunded" }) };
const payTo = (to: string) => ({ name: "mcp_shop_pay", args: { to } });
const yes: Answer = { answers: { confirm: { action: "accept", content: { ok: true } } } };
const approve: Answer = { decisions: [{ type: "approve" }] };
const answering = (question: Question): Answer => (question.kind === "approval" ? approve : yes);

type Of<T extends StreamEvent["type"]> = Extract<StreamEvent, { type: T }>;
const of = <T extends StreamEvent["type"]>(events: readonly StreamEvent[], type: T): Array<Of<T>> =>
  events.filter((event): event is Of<T> => event.type === type);
const states = (events: readonly StreamEvent[]) => of(events, "end").map(({ state }) => state);
const codes = (events: readonly StreamEvent[]) => of(events, "error").map(({ error }) => error.code);

async function setUp(...calls: Parameters<typeof callingModel>) {
  const client = scriptedClient({ pay, refund });
  const tools = await mcpTools(client);
  const agent = createAgent({
    model: callingModel(...calls),
    tools,
    middleware: [mcpMiddleware(), approvals(tools)],
    checkpointer: new MemorySaver(),
  });
  const talk = async (
    input: Parameters<typeof streamInteractive>[1],
    options: Partial<StreamInteractiveOptions> = {},
  ): Promise<StreamEvent[]> => {
    const events: StreamEvent[] = [];
    const all = { threadId: "t", ask: answering, ...options };
    for await (const event of streamInteractive(agent, input, all)) events.push(event);
    return events;
  };
  return { agent, client, talk };
}

describe("one stream of a message and the answers it needs", () => {
  it("tells every run from its start to its end, and every call once", async () => {
    const { talk, client } = await setUp({ name: "mcp_shop_refund" }, payTo("bob"));
    const order: string[] = [];
    const events = await talk("go", {
      firstSeq: 7,
      ask: (question) => {
        order.push(question.kind);
        return answering(question);
      },
    });
    expect(order).toEqual(["approval", "elicitation"]);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 7));
    expect(states(events)).toEqual(["waiting", "waiting", "done"]);
    expect(of(events, "run-start").map(({ resumed }) => resumed)).toEqual([false, true, true]);
    expect(new Set(events.map(({ runId }) => runId)).size).toBe(3);
    for (const type of ["call-start", "call-end", "tool-start", "tool-end"] as const) {
      const ids = of(events, type).map(({ toolCallId }) => toolCallId);
      expect([type, ids.toSorted()]).toEqual([type, ["offline_1_0", "offline_1_1"]]);
    }
    expect(events.at(-1)).toMatchObject({ state: "done", reply: "done: success=refunded | success=paid bob" });
    expect(client.sent).toHaveLength(3);
  });

  it("ends as waiting where the person leaves in the middle of two questions, and the first answer is kept", async () => {
    const { talk, client } = await setUp(payTo("bob"), payTo("eve"));
    let asked = 0;
    const events = await talk("go", { ask: (question) => (asked++ === 0 ? answering(question) : undefined) });
    expect(states(events)).toEqual(["waiting", "waiting"]);
    expect(of(events, "tool-end").map(({ text }) => text)).toEqual(["paid bob"]);
    const rest = await talk(undefined);
    expect(of(rest, "question").map(({ question }) => question)).toMatchObject([{ tool: "pay" }]);
    expect(of(rest, "tool-end").map(({ text }) => text)).toEqual(["paid eve"]);
    expect(states(rest)).toEqual(["waiting", "done"]);
    expect(client.sent).toHaveLength(4);
  });

  it("asks what is open first and sends the message afterwards, without an error", async () => {
    const { talk } = await setUp(payTo("bob"));
    await talk("go", { ask: () => undefined });
    const events = await talk("plain next");
    expect(codes(events)).toEqual([]);
    expect(states(events)).toEqual(["waiting", "done", "done"]);
    expect(of(events, "end").map(({ reply }) => reply)).toEqual([undefined, "done: success=paid bob", "done: "]);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
  });

  it("says that an answer came too late, and goes on", async () => {
    const { agent, talk, client } = await setUp(payTo("bob"));
    await talk("go", { ask: () => undefined });
    const events = await talk("plain next", {
      ask: async (question) => {
        const resume = { [question.id]: resumeValue(question, yes) };
        await agent.invoke(new Command({ resume }), { configurable: { thread_id: "t" } });
        return { answers: { confirm: { action: "decline" } } };
      },
    });
    expect(codes(events)).toEqual(["superseded"]);
    expect(events.at(-1)).toMatchObject({ state: "done", reply: "done: " });
    expect(client.sent).toHaveLength(2);
  });

  it("takes over from whoever answered elsewhere and died over it", async () => {
    const { agent, talk, client } = await setUp(payTo("bob"));
    const events = await talk("go", {
      ask: async (question) => {
        const dying = new AbortController();
        const resume = [{ ...yes, id: question.id }];
        for await (const event of streamRun(agent, { resume }, { threadId: "t", signal: dying.signal })) {
          if (event.type === "tool-end") dying.abort();
        }
        return { answers: { confirm: { action: "decline" } } };
      },
    });
    expect(codes(events)).toEqual(["superseded"]);
    expect(states(events)).toEqual(["waiting", "failed", "done"]);
    expect(events.at(-1)).toMatchObject({ reply: "done: success=paid bob" });
    expect(client.sent).toHaveLength(2);
  });

  it("continues a run that was cut before it sends the message", async () => {
    let broken = true;
    const model = new OfflineModel({
      reply: ({ text }) => {
        if (broken) throw new Error("the line went dead");
        return { text: `end of ${text}` };
      },
    });
    const agent = createAgent({ model, tools: [], checkpointer: new MemorySaver() });
    const heard: unknown[] = [];
    const options = { threadId: "t", ask: answering, onError: (error: unknown) => heard.push(error) };
    const failed: StreamEvent[] = [];
    for await (const event of streamInteractive(agent, "go", options)) failed.push(event);
    expect(of(failed, "error")).toMatchObject([{ error: { code: "unexpected", reference: expect.any(String) } }]);
    expect(states(failed)).toEqual(["failed"]);
    expect(heard).toEqual([expect.objectContaining({ message: "the line went dead" })]);
    broken = false;
    const events: StreamEvent[] = [];
    for await (const event of streamInteractive(agent, "hello", options)) events.push(event);
    expect(
      of(events, "text")
        .map(({ delta }) => delta)
        .join(""),
    ).toBe("end of goend of hello");
    expect(states(events)).toEqual(["done"]);
  });
});

describe("where nobody may be asked", () => {
  it("the stream ends with a failed run, also when a question is open", async () => {
    const { talk } = await setUp(payTo("bob"));
    await talk("go", { ask: () => undefined });
    const { leases } = openMemory();
    await leases.acquire("thread:t", "another run", 60_000);
    const ask = () => expect.fail("nobody is asked while another run has the thread");
    const events = await talk("plain next", { leases, ask });
    expect(codes(events)).toEqual(["thread_busy"]);
    expect(states(events)).toEqual(["waiting"]);
  });

  it("the stream ends when the signal fires at a question, and the question stays open", async () => {
    const { agent, talk } = await setUp(payTo("bob"), payTo("eve"));
    const stop = new AbortController();
    const events = await talk("go", {
      signal: stop.signal,
      ask: () => {
        stop.abort();
        return undefined;
      },
    });
    expect(states(events)).toEqual(["waiting"]);
    expect(await openQuestions(agent, "t")).toHaveLength(2);
    const never = await talk("plain next", { signal: stop.signal, ask: () => expect.fail("nobody is there any more") });
    expect(states(never)).toEqual(["aborted"]);
  });

  it("wrong options are thrown at once", async () => {
    const { agent } = await setUp();
    const start = (options: object) => () => streamInteractive(agent, "go", options as never);
    expect(start({ threadId: "t", aks: answering })).toThrow('no option "aks"');
    expect(start({ threadId: "t", ask: answering, runId: "r" })).toThrow("runId");
    expect(start({ threadId: "", ask: answering })).toThrow("streamInteractive needs options.threadId");
    expect(start({ threadId: "t" })).toThrow("streamInteractive needs options.ask");
  });
});
