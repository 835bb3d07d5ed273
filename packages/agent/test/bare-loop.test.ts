import { createClient, type Interceptor } from "@tenon/client";
import { createServer } from "@tenon/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type BareLoopOptions,
  bareLoop,
  type ChatMessage,
  dispatch,
  type LoopEvent,
  toOpenAITools,
} from "../src/index.ts";
import { awkwardShop } from "./awkward-shop.ts";
import { type EndpointReply, openaiEndpoint } from "./openai-endpoint.ts";

const shop = awkwardShop()
  .tool("long", { description: "x".repeat(3_000) }, () => "y".repeat(100_000))
  .tool("wait", { description: "Waits" }, async (_, ctx) => {
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve, { once: true }));
    return "never";
  });
const asking = createServer({ name: "asking", version: "1.0.0", logSink: () => undefined }).tool(
  "age",
  { input: z.object({}) },
  async (_, ctx) => {
    const answer = await ctx.elicit("How old?", z.object({ age: z.int() }));
    return answer.action === "accept" ? `${answer.data.age}` : answer.action;
  },
);
const urls = { shop: "", asking: "" };
beforeAll(async () => {
  urls.shop = (await shop.listen({ port: 0 })).url;
  urls.asking = (await asking.listen({ port: 0 })).url;
});
afterAll(async () => {
  await shop.close();
  await asking.close();
});

const connect = (interceptors: Interceptor[] = []) =>
  createClient({
    servers: { shop: { url: urls.shop }, asking: { url: urls.asking } },
    elicitation: () => ({ action: "accept", content: { age: 41 } }),
    interceptors,
  });

const question: ChatMessage = { role: "user", content: "go" };
const call = (name: string, args: unknown = {}, id = `id_${name}`) => ({ id, name: `mcp_shop_${name}`, args });

async function run(
  script: readonly EndpointReply[],
  options: Partial<BareLoopOptions> = {},
  flavour: "openai" | "deepseek" = "deepseek",
) {
  await using endpoint = await openaiEndpoint(script, flavour);
  await using client = connect();
  const result = await bareLoop({
    client,
    model: "any",
    endpoint: { baseUrl: endpoint.baseUrl, apiKey: "sk-test" },
    messages: [question],
    ...options,
  });
  return { ...result, endpoint };
}

const toolTexts = (messages: readonly ChatMessage[]) =>
  messages.filter((message) => message.role === "tool").map((message) => message.content);

describe("a loop without a framework", () => {
  it.each([false, true])("answers every call of a turn, whatever is wrong with it (streaming: %s)", async (stream) => {
    const events: LoopEvent[] = [];
    const { status, reply, messages, turns, endpoint } = await run(
      [
        {
          calls: [
            call("optional", { names: ["中文"], n: null }),
            call("no_such_tool"),
            call("either", "{ not json"),
            call("either", "[1]", "id_list"),
            call("shape", { shape: { kind: "triangle" } }),
            call("broken"),
            call("silent"),
            call("picture"),
            call("long"),
            { id: "id_age", name: "mcp_asking_age", args: "" },
          ],
        },
        { text: "All done." },
      ],
      { stream, maxResultChars: 1_000, onEvent: (event) => events.push(event) },
    );
    expect({ status, reply, turns }).toEqual({ status: "done", reply: "All done.", turns: 2 });
    expect(toolTexts(messages)).toEqual([
      '{"names":["中文"],"n":null}',
      expect.stringContaining('There is no tool "mcp_shop_no_such_tool"'),
      expect.stringContaining("are not JSON"),
      expect.stringContaining("must be one JSON object"),
      expect.stringContaining('The arguments do not fit tool "shape"'),
      "the printer is on fire",
      "(no output)",
      "[image, image/png, 3 bytes]",
      expect.stringMatching(/^y{1000}\n\[cut: the first 1000 of 100000 characters\]$/),
      "41",
    ]);
    expect(
      events
        .filter((event) => event.type === "tool-end")
        .map((event) => event.status)
        .toSorted(),
    ).toEqual([...Array.from({ length: 5 }, () => "error"), ...Array.from({ length: 5 }, () => "success")]);
    const deltas = events.filter((event) => event.type === "text").map((event) => event.delta);
    expect([deltas.join(""), deltas.length > 1]).toEqual(["All done.", stream]);
    expect(endpoint.keys).toEqual(["Bearer sk-test", "Bearer sk-test"]);
    expect(endpoint.requests.every((request) => request.stream === stream)).toBe(true);
  });

  it("runs the calls of one turn at the same time", async () => {
    let inside = 0;
    let most = 0;
    let release = () => {};
    const together = new Promise<void>((resolve) => {
      release = resolve;
    });
    const meet: Interceptor = async (request, next) => {
      most = Math.max(most, ++inside);
      if (inside === 2) release();
      await together; // would hang if one waited for the other
      inside -= 1;
      return next(request);
    };
    await using client = connect([meet]);
    const script = [{ calls: [call("silent"), call("nothing")] }, { text: "ok" }];
    expect((await run(script, { client })).status).toBe("done");
    expect(most).toBe(2);
  });

  it("two calls with one id, or none, are both answered", async () => {
    const script = [
      { calls: [call("nothing", {}, "x"), call("nothing", {}, "x"), call("nothing", {}, "")] },
      { text: "ok" },
    ];
    const { messages } = await run(script);
    expect(toolTexts(messages)).toEqual(["{}", "{}", "{}"]);
  });

  it("says so when the turns are used up, with a conversation that can go on", async () => {
    await using endpoint = await openaiEndpoint([{ text: "more", calls: [call("nothing")] }]);
    await using client = connect();
    const options = { client, model: "any", endpoint: { baseUrl: endpoint.baseUrl }, maxTurns: 2 };
    const first = await bareLoop({ ...options, messages: [question] });
    expect(first).toMatchObject({ status: "max_turns", turns: 2, reply: "more" });
    expect(toolTexts(first.messages)).toEqual(["{}", "Not carried out: the limit of turns was reached."]);
    const second = await bareLoop({ ...options, messages: [...first.messages, question] });
    expect(second.status).toBe("max_turns");
  });

  it("ends when it is aborted, in a tool and in a request", async () => {
    for (const script of [[{ calls: [call("wait")] }], [{ hang: true }]]) {
      const stop = new AbortController();
      await using endpoint = await openaiEndpoint(script);
      await using client = connect();
      const running = bareLoop({
        client,
        model: "any",
        endpoint: { baseUrl: endpoint.baseUrl },
        messages: [question],
        signal: stop.signal,
        onEvent: (event) => event.type === "tool-start" && stop.abort(new Error("enough")),
      });
      if (script[0] && "hang" in script[0])
        await expect.poll(() => endpoint.requests.length, { timeout: 10_000 }).toBe(1);
      if (script[0] && "hang" in script[0]) stop.abort(new Error("enough"));
      await expect(running).rejects.toThrow("enough");
    }
  });
});

describe("an endpoint in trouble", () => {
  it("is asked again after 429 and 5xx, as late as it says", async () => {
    const { reply, endpoint } = await run([
      { status: 429, headers: { "retry-after": "0" } },
      { status: 503, headers: { "retry-after": new Date(Date.now() - 1_000).toUTCString() } },
      { text: "hi" },
    ]);
    expect([reply, endpoint.requests.length]).toEqual(["hi", 3]);
  });

  it.each<[string, EndpointReply[], object]>([
    [
      "a refusal is not repeated",
      [{ status: 400 }],
      { code: "model_refused", message: expect.stringContaining("scripted failure") },
    ],
    ["nor is a wrong key", [{ status: 401 }], { name: "AuthError", code: "model_auth" }],
    [
      "nor a wait that is too long",
      [{ status: 429, headers: { "retry-after": "3600" } }],
      { code: "model_unavailable", data: { status: 429, retryAfterMs: 3_600_000 } },
    ],
    ["an answer that is not JSON", [{ raw: "<html>" }], { code: "model_bad_answer" }],
    ["an answer without a choice", [{ raw: "{}" }], { code: "model_bad_answer" }],
  ])("%s", async (_, script, expected) => {
    await using endpoint = await openaiEndpoint(script);
    await using client = connect();
    const options = { client, model: "any", endpoint: { baseUrl: endpoint.baseUrl }, messages: [question] };
    await expect(bareLoop(options)).rejects.toMatchObject(expected);
    expect(endpoint.requests).toHaveLength(1);
  });

  it("that breaks off in the middle of a text is an error, since the text was shown", async () => {
    await expect(run([{ text: "half of", breakOff: true }], { stream: true })).rejects.toMatchObject({
      name: "ConnectionError",
      retryable: true,
    });
  });

  it("that is not there, or too slow", async () => {
    await using client = connect();
    const gone = { baseUrl: "http://127.0.0.1:9/v1", maxRetries: 0 };
    const options = { client, model: "any", messages: [question] };
    await expect(bareLoop({ ...options, endpoint: gone })).rejects.toMatchObject({ code: "model_unreachable" });
    await using slow = await openaiEndpoint([{ hang: true }]);
    const endpoint = { baseUrl: slow.baseUrl, timeoutMs: 200, maxRetries: 0 };
    await expect(bareLoop({ ...options, endpoint })).rejects.toMatchObject({ code: "model_timeout" });
  });
});

describe("a person decides about dangerous calls", () => {
  const script = (name = "drop", args: unknown = {}): EndpointReply[] => [
    { calls: [call(name, args)] },
    { text: "ok" },
  ];

  it("those that the server calls destructive, when there is somebody to ask", async () => {
    const asked: unknown[] = [];
    const { messages } = await run(script(), {
      approve: (action) => {
        asked.push(action);
        return { type: "reject", message: "not today" };
      },
    });
    expect(asked).toEqual([
      expect.objectContaining({ name: "mcp_shop_drop", server: "shop", tool: "drop", toolCallId: "id_drop", args: {} }),
    ]);
    expect(toolTexts(messages)).toEqual(["The person rejected this call; it was not carried out. Reason: not today"]);
    expect(toolTexts((await run(script(), { approve: () => ({ type: "approve" }) })).messages)).toEqual(["dropped"]);
    expect(toolTexts((await run(script())).messages)).toEqual(["dropped"]);
  });

  it("others by policy, with edits checked by the tool's schema and asked for again", async () => {
    const errors: Array<string | undefined> = [];
    const { messages } = await run(script("optional", { n: 1 }), {
      policy: { "shop/optional": { decisions: ["edit"] } },
      approve: ({ error }) => {
        errors.push(error);
        if (errors.length === 1) return { type: "approve" };
        return { type: "edit", editedAction: { args: { n: errors.length === 2 ? "x" : 7 } } };
      },
    });
    expect(errors).toEqual([
      undefined,
      expect.stringContaining('"approve" is not allowed'),
      expect.stringContaining("n: must be"),
    ]);
    expect(toolTexts(messages)).toEqual(['{"n":7}']);
  });

  it("who may let another tool run instead, where the policy says so", async () => {
    const { messages } = await run(script(), {
      policy: { "shop/drop": { renameTo: ["shop/optional"] } },
      approve: () => ({ type: "edit", editedAction: { name: "shop/optional", args: { n: 2 } } }),
    });
    expect(toolTexts(messages)).toEqual(['{"n":2}']);
  });

  it("one who never decides usably ends the loop", async () => {
    // @ts-expect-error a program's mistake
    await expect(run(script(), { approve: () => true })).rejects.toMatchObject({ code: "approval_decision" });
  });
});

describe("options that cannot be meant", () => {
  const options = { client: undefined as unknown as BareLoopOptions["client"], model: "openai:gpt-4.1", messages: [] };
  it.each<[object, string, string]>([
    [{ maxTurn: 3 }, "unknown_option", 'did you mean "maxTurns"'],
    [{ maxTurns: 0 }, "invalid_option", "maxTurns"],
    [{ policy: {} }, "approval_policy", "nobody to ask"],
  ])("%j", async (more, code, text) => {
    await expect(bareLoop({ ...options, ...more })).rejects.toMatchObject({
      code,
      message: expect.stringContaining(text),
    });
  });
});

describe("the parts, for a loop of one's own", () => {
  it("tools with their model-side names, and one message per call", async () => {
    await using client = connect();
    const tools = await client.listTools("shop");
    const wire = toOpenAITools(tools);
    expect(wire.map((tool) => tool.function.name)).toEqual(tools.map((tool) => tool.name));
    expect(wire.find((tool) => tool.function.name === "mcp_shop_long")?.function.description).toHaveLength(1_024);
    const message = await dispatch(client, tools, {
      id: "c1",
      function: { name: "mcp_shop_optional", arguments: '{"n": 3}' },
    });
    expect(message).toEqual({ role: "tool", tool_call_id: "c1", content: '{"n":3}' });
  });
});
