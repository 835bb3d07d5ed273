import { Command, MemorySaver, ReducedValue, StateSchema } from "@langchain/langgraph";
import { createClient } from "@tenon/client";
import { redactor } from "@tenon/client/interceptors";
import { createServer, ToolError } from "@tenon/server";
import { openMemory } from "@tenon/store";
import { createAgent } from "langchain";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentInterceptor,
  approvals,
  mcpMiddleware,
  mcpTools,
  openQuestions,
  type Question,
  resolveModel,
  type StreamEvent,
  type StreamInput,
  type StreamOptions,
  streamRun,
  toolMessageOf,
} from "../src/index.ts";
import { type EndpointReply, openaiEndpoint } from "./openai-endpoint.ts";

const cleanups: Array<() => unknown> = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Of<T extends StreamEvent["type"]> = Extract<StreamEvent, { type: T }>;
const of = <T extends StreamEvent["type"]>(events: readonly StreamEvent[], type: T): Array<Of<T>> =>
  events.filter((event): event is Of<T> => event.type === type);
const endOf = (events: readonly StreamEvent[]) => {
  const last = events.at(-1);
  if (last?.type !== "end") throw new Error(`the stream ended with ${last?.type}`);
  return last;
};

/** A real server, a real client and a provider's client that talks to a scripted endpoint. */
async function setUp(script: readonly EndpointReply[], interceptors: AgentInterceptor[] = []) {
  const seen = { aborted: 0, spam: 0 };
  let entered: () => void = () => {};
  const inside = new Promise<void>((resolve) => {
    entered = resolve;
  });
  const server = createServer({ name: "shop", version: "1.0.0", logSink: () => {} });
  const readOnly = { annotations: { readOnlyHint: true } };
  server.tool("count", { ...readOnly, input: z.object({ to: z.int(), as: z.string() }) }, async ({ to, as }, ctx) => {
    for (let n = 1; n <= to; n += 1) await ctx.progress(n, to, `${as} ${n}`);
    await ctx.log.info(`${as} counted`);
    return { n: to, as };
  });
  server.tool("fail", readOnly, () => {
    throw new ToolError("nobody is at the desk");
  });
  server.tool("hang", readOnly, async (_, ctx) => {
    if (seen.aborted > 0) return "early";
    entered();
    await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve(), { once: true }));
    seen.aborted += 1;
    return "late";
  });
  server.tool("ask", { ...readOnly, input: z.object({ what: z.string() }) }, async ({ what }, ctx) => {
    const answer = await ctx.elicit(`${what}?`, z.object({ size: z.enum(["S", "M"]), gift: z.boolean() }));
    return answer.action === "accept" ? `${what} ${answer.data.size}` : "nothing";
  });
  server.tool("spam", readOnly, async (_, ctx) => {
    for (let n = 1; n <= 300; n += 1) {
      await ctx.progress(n, 300);
      await ctx.log.info(`line ${n}`);
    }
    return "spammed";
  });
  server.tool(
    "refund",
    { input: z.object({ id: z.string(), token: z.string() }), annotations: { destructiveHint: true } },
    ({ id, token }) => `refunded ${id} with ${token.length}`,
  );
  server.tool("long", readOnly, () => ({ text: "x".repeat(50_000), list: Array.from({ length: 9_000 }, (_, n) => n) }));
  const { url, close } = await server.listen({ port: 0 });
  cleanups.push(
    () => server.close(),
    () => close(10),
  );
  const client = createClient({ servers: { shop: { url } }, elicitation: "interrupt", interceptors });
  cleanups.push(() => client.close());
  const endpoint = await openaiEndpoint(script, "deepseek");
  cleanups.push(() => endpoint[Symbol.asyncDispose]());
  const tools = await mcpTools(client);
  const agent = createAgent({
    model: await resolveModel("deepseek:deepseek-chat", { baseUrl: endpoint.baseUrl, apiKey: "sk-test" }),
    tools,
    middleware: [mcpMiddleware(), approvals(tools)],
    stateSchema: new StateSchema({
      visits: new ReducedValue(z.array(z.string()).default([]), { reducer: (all, more) => [...all, ...more] }),
      secret: z.string().default(""),
    }),
    checkpointer: new MemorySaver(),
  });
  const stream = (input: StreamInput, options: Partial<StreamOptions> = {}) =>
    streamRun(agent, input, { threadId: "t", ...options });
  const collect = async (input: StreamInput, options: Partial<StreamOptions> = {}) => {
    const events: StreamEvent[] = [];
    for await (const event of stream(input, options)) events.push(event);
    return events;
  };
  return { agent, collect, endpoint, inside, seen, stream };
}

const call = (name: string, args: unknown = {}, id = `call_${name}`) => ({ id, name: `mcp_shop_${name}`, args });

describe("a run as one stream of events", () => {
  it("tells the model's thoughts, text and arguments as they come, then progress, log and result", async () => {
    const { collect } = await setUp([
      { reasoning: "They want numbers.", text: "I will count.", calls: [call("count", { to: 2, as: "é 北京" })] },
      { text: "Counted to two." },
    ]);
    const events = await collect("count");
    expect(events.map((event) => event.seq)).toEqual(events.map((_, i) => i + 1));
    expect(new Set(events.map(({ runId, threadId }) => `${threadId} ${runId}`)).size).toBe(1);
    expect(events.every((event, i) => event.timestamp >= (events[i - 1]?.timestamp ?? 0))).toBe(true);
    expect(JSON.parse(JSON.stringify(events))).toEqual(events);

    const kinds = events.map((event) => event.type).filter((type, i, all) => type !== all[i - 1]);
    expect(kinds).toEqual([
      "run-start",
      "state", // what the agent's schema begins with
      "reasoning",
      "text",
      "call-start",
      "call-args",
      "text-end",
      "call-end",
      "tool-start",
      ...kinds.slice(9, -4),
      "tool-end",
      "text",
      "text-end",
      "end",
    ]);
    const ids = new Set(of(events, "text").map(({ messageId }) => messageId));
    expect(ids.size).toBe(2);
    const [first = ""] = ids;
    const textOf = (id: string) =>
      of(events, "text")
        .filter(({ messageId }) => messageId === id)
        .map(({ delta }) => delta);
    expect(textOf(first)).toEqual(["I wi", "ll c", "ount", "."]);
    expect(
      of(events, "reasoning")
        .map(({ delta }) => delta)
        .join(""),
    ).toBe("They want numbers.");
    const origin = { toolCallId: "call_count", name: "mcp_shop_count", server: "shop", tool: "count" };
    expect(of(events, "call-start")).toMatchObject([{ ...origin, messageId: first }]);
    const json = of(events, "call-args").map(({ delta }) => delta);
    expect(json.length).toBeGreaterThan(3);
    expect(JSON.parse(json.join(""))).toEqual({ to: 2, as: "é 北京" });
    expect(of(events, "call-end")).toMatchObject([{ ...origin, args: { to: 2, as: "é 北京" } }]);
    expect(of(events, "tool-start")).toMatchObject([{ ...origin, args: { to: 2, as: "é 北京" } }]);
    expect(of(events, "progress").at(-1)).toMatchObject({
      server: "shop",
      tool: "count",
      toolCallId: "call_count",
      progress: 2,
      percent: 100,
      message: "é 北京 2",
    });
    expect(of(events, "log")).toMatchObject([{ level: "info", toolCallId: "call_count" }]);
    expect(of(events, "tool-end")).toMatchObject([
      { ...origin, status: "success", artifact: { structured: { n: 2, as: "é 北京" } } },
    ]);
    expect(endOf(events)).toMatchObject({ state: "done", reply: "Counted to two.", questions: [] });
  });

  it("keeps parallel calls apart, although their arguments and their progress are mixed", async () => {
    const { collect } = await setUp([
      {
        interleaved: true,
        calls: [call("count", { to: 3, as: "a" }, "call_a"), call("count", { to: 4, as: "bb" }, "call_b")],
      },
      { text: "Both." },
    ]);
    const events = await collect("count twice");
    for (const [id, args] of [
      ["call_a", { to: 3, as: "a" }],
      ["call_b", { to: 4, as: "bb" }],
    ] as const) {
      const own = events.filter((event) => "toolCallId" in event && event.toolCallId === id);
      expect(JSON.parse(of(own, "call-args").map(({ delta }) => delta).join(""))).toEqual(args); // biome-ignore format: one line
      expect(of(own, "call-end")).toMatchObject([{ args }]);
      expect(of(own, "progress").every(({ message = "" }) => message.startsWith(`${args.as} `))).toBe(true);
      expect(of(own, "progress").at(-1)).toMatchObject({ percent: 100 });
      expect(of(own, "log")).toMatchObject([{ data: expect.anything() }]);
      expect(of(own, "tool-end")).toMatchObject([{ status: "success", artifact: { structured: { as: args.as } } }]);
      const order = own.map((event) => event.type).filter((type, i, all) => type !== all[i - 1]);
      expect([order[0], order.at(-1)]).toEqual(["call-start", "tool-end"]);
    }
    const pieces = of(events, "call-args").map(({ toolCallId }) => toolCallId);
    expect(pieces.slice(0, 4)).toEqual(["call_a", "call_b", "call_a", "call_b"]);
    expect(endOf(events)).toMatchObject({ state: "done", reply: "Both." });
  });
});

describe("a command", () => {
  it("is a result and the state as it is afterwards, each value once", async () => {
    const noting: AgentInterceptor = async (request, next) => {
      const outcome = await next(request);
      if (!("isError" in outcome)) return outcome;
      const update = { messages: [toolMessageOf(request, outcome)], visits: [request.name], secret: "token=hunter2" };
      return new Command({ update });
    };
    const script: EndpointReply[] = [
      { calls: [call("count", { to: 1, as: "a" })] },
      { calls: [call("fail")] },
      { text: "Done." },
    ];
    const { collect } = await setUp(script, [noting]);
    const events = await collect("go", { redact: redactor() });
    expect(of(events, "state").map(({ values }) => values)).toEqual([
      { visits: [], secret: "[redacted]" },
      { visits: ["count"], secret: "[redacted]" },
      { visits: ["count", "fail"] },
    ]);
    expect(of(events, "tool-end").map(({ status }) => status)).toEqual(["success", "error"]);
    expect(of(await collect("plain"), "state")).toEqual([]);
  });
});

describe("a person in the middle of a run", () => {
  it("is asked by one stream and answers with the next", async () => {
    const { collect } = await setUp([{ calls: [call("ask", { what: "Shirt" })] }, { text: "One shirt." }]);
    const asked = await collect("buy");
    const [{ question } = { question: undefined }] = of(asked, "question");
    if (question?.kind !== "elicitation") throw new Error("no question came");
    expect(question).toMatchObject({ server: "shop", tool: "ask", toolCallId: "call_ask" });
    const [key = ""] = Object.keys(question.questions);
    expect(question.questions[key]).toMatchObject({ mode: "form", message: "Shirt?", fields: [{ name: "size" }, { name: "gift" }] }); // biome-ignore format: one line
    expect(endOf(asked)).toMatchObject({ state: "waiting", questions: [question.id] });

    const answers = { [key]: { action: "accept" as const, content: { size: "M", gift: false } } };
    const { id, elicitationId } = question;
    const early = await collect("and now?");
    expect(of(early, "error")).toMatchObject([{ error: { code: "questions_open" } }]);
    expect(of(early, "question")).toMatchObject([{ question: { id } }]);
    expect(endOf(early).state).toBe("waiting");

    const old = await collect({ resume: [{ id, elicitationId: `${elicitationId}x`, answers }] });
    expect(of(old, "error")).toMatchObject([{ error: { code: "superseded" } }]);
    expect(endOf(old).state).toBe("waiting");

    const wrong = await collect({ resume: [{ id, elicitationId, answers: {} }] });
    expect(of(wrong, "question")).toMatchObject([{ question: { error: expect.stringContaining("cannot be used") } }]);

    const again = of(wrong, "question")[0]?.question;
    const events = await collect({ resume: [{ id: again?.id ?? "", answers }] }, { firstSeq: 100 });
    expect(events[0]).toMatchObject({ type: "run-start", resumed: true, seq: 100 });
    expect(of(events, "call-end")).toEqual([]);
    expect(of(events, "tool-end")).toMatchObject([{ toolCallId: "call_ask", text: "Shirt M", status: "success" }]);
    expect(endOf(events)).toMatchObject({ state: "done", reply: "One shirt." });
  });

  it("answers one of two parallel questions; the other stays open and nothing runs twice", async () => {
    const both = [call("ask", { what: "Shirt" }, "call_1"), call("ask", { what: "Cap" }, "call_2")];
    const { collect } = await setUp([{ calls: both }, { text: "Both." }]);
    const asked = of(await collect("buy"), "question").map(({ question }) => question);
    expect(asked).toHaveLength(2);
    const replyTo = (question: Question | undefined) => {
      if (question?.kind !== "elicitation") throw new Error("no question came");
      const content = { size: "S", gift: true };
      const answers = Object.fromEntries(
        Object.keys(question.questions).map((key) => [key, { action: "accept" as const, content }]),
      );
      return { resume: [{ id: question.id, elicitationId: question.elicitationId, answers }] };
    };
    const half = await collect(replyTo(asked[0]));
    expect(of(half, "question").map(({ question }) => question.id)).toEqual([asked[1]?.id]);
    expect(endOf(half).state).toBe("waiting");
    const rest = await collect(replyTo(asked[1]));
    expect(of(rest, "error")).toEqual([]);
    expect([...half, ...rest].filter(({ type }) => type === "tool-end")).toHaveLength(2);
    expect(endOf(rest)).toMatchObject({ state: "done", reply: "Both." });
  });

  it("approves or edits without seeing secrets, and the tool gets the originals", async () => {
    const { collect } = await setUp([
      { calls: [call("refund", { id: "o1", token: "hunter2hunter2" })] },
      { text: "Refunded." },
    ]);
    const redact = redactor({ keys: ["token"] });
    const asked = await collect("refund", { redact });
    expect(JSON.stringify(asked)).not.toContain("hunter2");
    expect(of(asked, "call-args")).toEqual([]);
    expect(of(asked, "call-end")).toMatchObject([{ args: { id: "o1", token: "[redacted]" } }]);
    const [{ question } = { question: undefined }] = of(asked, "question");
    expect(question).toMatchObject({
      kind: "approval",
      actions: [{ server: "shop", tool: "refund", args: { id: "o1", token: "[redacted]" } }],
    });
    const editedAction = { args: { id: "o2", token: "[redacted]" } };
    const events = await collect(
      { resume: [{ id: question?.id ?? "", decisions: [{ type: "edit", editedAction }] }] },
      { redact },
    );
    expect(of(events, "tool-start")).toMatchObject([{ args: { id: "o2", token: "[redacted]" } }]);
    expect(of(events, "tool-end")).toMatchObject([{ text: "refunded o2 with 14" }]);
    expect(JSON.stringify(events)).not.toContain("hunter2");
    expect(endOf(events).state).toBe("done");
  });

  it("rejects: the call has a result and never started", async () => {
    const { collect } = await setUp([{ calls: [call("refund", { id: "o1", token: "x" })] }, { text: "Not done." }]);
    const [{ question } = { question: undefined }] = of(await collect("refund"), "question");
    const events = await collect({ resume: [{ id: question?.id ?? "", decisions: [{ type: "reject" }] }] });
    expect(of(events, "tool-start")).toEqual([]);
    expect(of(events, "tool-end")).toMatchObject([{ status: "error", toolCallId: "call_refund" }]);
    expect(endOf(events)).toMatchObject({ state: "done", reply: "Not done." });
  });
});

describe("what goes wrong", () => {
  it("in a tool is a result with status error, and the run goes on", async () => {
    const { collect } = await setUp([{ calls: [call("fail"), call("nothing")] }, { text: "Sorry." }]);
    const events = await collect("go");
    expect(of(events, "error")).toEqual([]);
    expect(of(events, "tool-end")).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ toolCallId: "call_fail", status: "error", text: "nobody is at the desk" }),
        expect.objectContaining({ toolCallId: "call_nothing", status: "error" }),
      ]),
    );
    expect(endOf(events)).toMatchObject({ state: "done", reply: "Sorry." });
  });

  it("in the model is one masked error, then the end; the thread goes on later", async () => {
    const { collect } = await setUp([{ status: 400 }, { text: "Hello again." }]);
    const heard: string[] = [];
    const events = await collect("go", { onError: (error, reference) => heard.push(`${reference} ${error}`) });
    const [{ error } = { error: undefined }] = of(events, "error");
    expect(error).toMatchObject({ code: "model_failed", status: 400, retryable: false });
    expect(JSON.stringify(events)).not.toContain("scripted failure");
    expect(heard).toEqual([expect.stringMatching(new RegExp(`^${error?.reference} .*scripted failure`))]);
    expect(events.slice(-2).map(({ type }) => type)).toEqual(["error", "end"]);
    expect(endOf(events).state).toBe("failed");
    expect(endOf(await collect(undefined))).toMatchObject({ state: "done", reply: "Hello again." });
  });

  it("a model that breaks off, or writes arguments nobody can read, is told as well", async () => {
    const { collect } = await setUp([{ text: "I will not fin", breakOff: true }, { calls: [call("count", "to=1")] }]);
    const broken = await collect("go", { onError: () => {} });
    expect(of(broken, "text").length).toBeGreaterThan(0);
    expect(of(broken, "text-end")).toEqual([]);
    expect(of(broken, "error")).toMatchObject([{ error: { retryable: expect.any(Boolean) } }]);
    expect(endOf(broken).state).toBe("failed");
    const events = await collect(undefined);
    expect(of(events, "call-end")).toMatchObject([{ toolCallId: "call_count", problem: expect.any(String) }]);
    expect(of(events, "tool-start")).toEqual([]);
    expect(endOf(events).state).toBe("done");
  });

  it("a server of the model that is broken may be tried again", async () => {
    const { collect } = await setUp([{ status: 500 }]);
    const events = await collect("go", { onError: () => {} });
    expect(of(events, "error")).toMatchObject([{ error: { code: "model_failed", status: 500, retryable: true } }]);
  }, 60_000);

  it("before the run is told in the stream as well, except wrong options", async () => {
    const { agent, stream } = await setUp([{ text: "hi" }]);
    const failing = streamRun({ ...agent, getState: () => Promise.reject(new Error("disk /srv/x is full")) } as never, "hi", { threadId: "t", onError: () => {} }); // biome-ignore format: one line
    const events: StreamEvent[] = [];
    for await (const event of failing) events.push(event);
    expect(events.map(({ type }) => type)).toEqual(["run-start", "error", "end"]);
    expect(JSON.stringify(events)).not.toContain("/srv/x");
    expect(() => stream("hi", { thread: "t" } as never)).toThrow('did you mean "threadId"');
    expect(() => stream("hi", { maxBuffered: 0 })).toThrow("at least 1");
    expect(() => stream("hi", { threadId: "" })).toThrow("threadId");
    const { leases } = openMemory();
    expect(() => stream("hi", { leases, exclusive: (work) => work() })).toThrow("not both");
  });

  it("a thread that another run has is told so, and continues afterwards", async () => {
    const { collect } = await setUp([{ text: "My turn." }]);
    const { leases } = openMemory();
    const other = await leases.acquire("thread:t", "another run", 60_000);
    const busy = await collect("go", { leases });
    expect(of(busy, "error")).toMatchObject([{ error: { code: "thread_busy", retryable: true } }]);
    expect(endOf(busy).state).toBe("failed");
    await leases.release(other.lease);
    expect(endOf(await collect("go", { leases }))).toMatchObject({ state: "done", reply: "My turn." });
  });

  it("an abort in the middle of a call reaches the server; the thread continues afterwards", async () => {
    const { collect, inside, seen, stream } = await setUp([{ calls: [call("hang")] }, { text: "Never mind." }]);
    const control = new AbortController();
    void inside.then(() => control.abort());
    const events: StreamEvent[] = [];
    for await (const event of stream("go", { signal: control.signal })) events.push(event);
    expect(of(events, "tool-start")).toHaveLength(1);
    expect(of(events, "error")).toEqual([]);
    expect(endOf(events).state).toBe("aborted");
    await expect.poll(() => seen.aborted, { timeout: 10_000 }).toBe(1);
    const never = await collect("x", { signal: AbortSignal.abort() });
    expect(never.map(({ type }) => type)).toEqual(["run-start", "end"]);
    const rest = await collect(undefined);
    expect(of(rest, "tool-end")).toMatchObject([{ toolCallId: "call_hang", text: "early" }]);
    expect(endOf(rest)).toMatchObject({ state: "done", reply: "Never mind." });
  });

  it("leaving the loop aborts the run", async () => {
    const { inside, seen, stream } = await setUp([{ calls: [call("hang")] }]);
    for await (const event of stream("go")) {
      if (event.type !== "tool-start") continue;
      await inside;
      break;
    }
    await expect.poll(() => seen.aborted, { timeout: 10_000 }).toBe(1);
  });
});

describe("a slow reader", () => {
  it("loses log lines and old progress, never a text, a call, a result or a question", async () => {
    const script: EndpointReply[] = [
      { text: "One moment please, ".repeat(20), calls: [call("spam"), call("ask", { what: "Shirt" })] },
    ];
    const { agent, stream } = await setUp(script);
    const run = stream("go", { maxBuffered: 40 });
    const events: StreamEvent[] = [];
    const first = await run.next();
    if (!first.done) events.push(first.value);
    // the run is over before anything else is read
    await expect.poll(() => openQuestions(agent, "t"), { timeout: 15_000 }).toHaveLength(1);
    for await (const event of run) events.push(event);
    expect(events.length).toBeLessThan(60);
    expect(
      of(events, "text")
        .map(({ delta }) => delta)
        .join(""),
    ).toBe("One moment please, ".repeat(20));
    expect(of(events, "call-end")).toHaveLength(2);
    expect(of(events, "tool-end")).toMatchObject([{ toolCallId: "call_spam", text: "spammed" }]);
    expect(of(events, "question")).toHaveLength(1);
    expect(of(events, "progress")).toHaveLength(1);
    expect(of(events, "progress")[0]?.progress).toBe(300);
    expect(events.map((event) => event.seq)).toEqual(events.map((_, i) => i + 1));
    const end = endOf(events);
    expect(end.state).toBe("waiting");
    expect((end.lostLogs ?? 0) + of(events, "log").length).toBe(300);
  });

  it("gets long results cut, and is told so", async () => {
    const { collect } = await setUp([{ calls: [call("long")] }, { text: "y".repeat(3_000) }]);
    const events = await collect("go", { maxTextChars: 1_000 });
    const [result] = of(events, "tool-end");
    expect(result).toMatchObject({ truncated: true, status: "success" });
    expect(result?.text).toHaveLength(1_000);
    expect(Math.max(...events.map((event) => JSON.stringify(event).length))).toBeLessThan(5_000);
    expect(endOf(events)).toMatchObject({ truncated: true, state: "done" });
    expect(
      of(events, "text")
        .map(({ delta }) => delta)
        .join(""),
    ).toHaveLength(3_000);
  });
});
