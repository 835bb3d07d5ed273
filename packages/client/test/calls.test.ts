import { ConnectionError, deserializeError, serializeError } from "@tenon/core";
import { afterEach, describe, expect, it } from "vitest";
import {
  type CallDriver,
  createClient,
  type ElicitationAnswer,
  type Interceptor,
  type Leg,
  renderText,
  type WireResult,
} from "../src/index.ts";
import { type Listening, legacy, listen, modern } from "./servers.ts";
import { closeAfterEach, connect, start as startStub, stubHttp } from "./stub/index.ts";

closeAfterEach();

let cleanup: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanup.reverse()) await end();
  cleanup = [];
});
function keep<T extends { close(): Promise<void> }>(client: T): T {
  cleanup.push(() => client.close());
  return client;
}
async function start(server: Promise<Listening>): Promise<Listening> {
  const listening = await server;
  cleanup.push(() => listening.kill());
  return listening;
}
const ok = (text: string) => ({ content: [{ type: "text", text }] });

describe("interceptors", () => {
  it("run in order, see the frozen request, and may change it, repeat it or answer themselves", async () => {
    const server = await start(modern());
    const trace: string[] = [];
    const outer: Interceptor = async (request, next) => {
      trace.push(`outer ${request.server}/${request.name}`);
      expect(Object.isFrozen(request) && Object.isFrozen(request.args)).toBe(true);
      const result = await next(request.with({ args: { text: `${request.args.text}!` } }));
      trace.push("outer done");
      return result;
    };
    const twice: Interceptor = async (request, next) => {
      trace.push("twice");
      await next(request);
      return next(request.with({ name: "echo", meta: { "x/y": 1 } }));
    };
    const short: Interceptor = async (request, next) => {
      if (request.name !== "cached") return next(request);
      return { content: [{ type: "text", text: "mine" }], isError: false, meta: {}, raw: { content: [] } };
    };
    const client = keep(createClient({ servers: { s: { url: server.url } }, interceptors: [outer, twice, short] }));
    expect(renderText((await client.callTool("s", "echo", { text: "hi" })).content)).toBe("hi!");
    expect(trace).toEqual(["outer s/echo", "twice", "outer done"]);
    const calls = server.requests.filter(({ body }) => body.method === "tools/call");
    expect(calls).toHaveLength(2);
    expect(calls[1]?.body).toMatchObject({ params: { _meta: { "x/y": 1 } } });
    const cached = keep(createClient({ servers: { s: { url: server.url } }, interceptors: [short] }));
    expect(renderText((await cached.callTool("s", "cached")).content)).toBe("mine");
  });
});

describe("a driver", () => {
  it("carries every leg and answers the questions, also when the legs are replayed from JSON", async () => {
    const server = await start(modern());
    const memo = new Map<number, string>();
    const legs: Leg[] = [];
    const driver = (answer?: ElicitationAnswer): CallDriver => ({
      leg: async (send, leg) => {
        legs.push(leg);
        const known = memo.get(leg.round);
        if (known) return JSON.parse(known) as WireResult;
        const result = await send();
        memo.set(leg.round, JSON.stringify(result));
        return result;
      },
      answer: async (questions) => {
        expect(questions).toMatchObject({ confirm: { mode: "form", message: "Sure?" } });
        if (!answer) throw new Error("suspended");
        return { confirm: answer };
      },
    });
    const client = keep(createClient({ servers: { s: { url: server.url } }, elicitation: "interrupt" }));
    await expect(client.callTool("s", "ask", {}, { driver: driver() })).rejects.toThrow("suspended");
    const sent = () => server.requests.filter(({ body }) => body.method === "tools/call");
    expect(sent()).toHaveLength(1);
    const result = await client.callTool(
      "s",
      "ask",
      {},
      { driver: driver({ action: "accept", content: { ok: true } }) },
    );
    expect(renderText(result.content)).toBe("accept:true");
    expect(legs.map(({ round }) => round)).toEqual([0, 0, 1]);
    expect(sent()).toHaveLength(2);
    expect(sent()[1]?.body).toMatchObject({
      params: { requestState: "state-1", inputResponses: { confirm: { action: "accept", content: { ok: true } } } },
    });
    memo.clear();
    const bad = client.callTool(
      "s",
      "ask",
      {},
      { driver: driver({ action: "accept", content: { ok: "x" } as never }) },
    );
    await expect(bad).rejects.toMatchObject({ code: "invalid_answer" });
    await expect(client.callTool("s", "ask")).rejects.toMatchObject({ code: "no_answerer" });
  });

  it("sees errors it can store and rebuild", async () => {
    const server = await start(modern());
    let stored: unknown;
    const driver: CallDriver = {
      leg: (send) =>
        send().catch((error: unknown) => {
          stored = JSON.parse(JSON.stringify(serializeError(error)));
          throw deserializeError(stored as never);
        }),
      answer: async () => ({}),
    };
    const client = keep(createClient({ servers: { s: { url: server.url } } }));
    await expect(client.callTool("s", "nope", {}, { driver })).rejects.toMatchObject({ data: { code: -32602 } });
    expect(stored).toMatchObject({ name: "ProtocolError", code: "unknown_tool", server: "s" });
    await server.kill();
    await expect(client.callTool("s", "echo", { text: "x" }, { driver })).rejects.toBeInstanceOf(ConnectionError);
  });

  it("cannot suspend a call on a server of the older revision, and says what to do", async () => {
    const server = await start(legacy());
    const client = keep(createClient({ servers: { s: { url: server.url } }, elicitation: "interrupt" }));
    const driver: CallDriver = { leg: (send) => send(), answer: async () => ({}) };
    const call = client.callTool("s", "ask", {}, { driver });
    await expect(call).rejects.toMatchObject({ name: "ProtocolError", code: "legacy_question" });
    await expect(call).rejects.toThrow(/older revision.*elicitation: handler/);
  });
});

describe("a call that waits for a person", () => {
  it("ends when the client is closed", async () => {
    const server = await start(modern());
    const client = createClient({ servers: { s: { url: server.url } }, elicitation: () => new Promise(() => {}) });
    const failed = expect(client.callTool("s", "ask")).rejects.toMatchObject({ code: "closed", maybeExecuted: true });
    await new Promise((resolve) => setTimeout(resolve, 200));
    await client.close();
    await failed;
  });

  it("lends its headers to no request made from its handler", async () => {
    const server = await start(modern());
    const other = await start(legacy());
    const inner = keep(createClient({ servers: { o: { url: other.url } } }));
    const outer = keep(
      createClient({
        servers: { s: { url: server.url } },
        elicitation: async () => {
          await inner.callTool("o", "echo", { text: "x" });
          return { action: "decline" };
        },
        events: { onProgress: () => void inner.listTools() },
      }),
    );
    await outer.callTool("s", "ask", {}, { headers: { Authorization: "Bearer me" } });
    await outer.callTool("s", "work", { label: "a", steps: 1, ms: 1 }, { headers: { Authorization: "Bearer me" } });
    await inner.close();
    expect(server.requests.some(({ headers }) => headers.authorization === "Bearer me")).toBe(true);
    expect(other.requests.length).toBeGreaterThan(3);
    expect(other.requests.some(({ headers }) => headers.authorization !== undefined)).toBe(false);
  });
});

describe("rounds", () => {
  const asks = (inputRequests: object | undefined, requestState?: string) => ({
    resultType: "input_required",
    ...(inputRequests && { inputRequests }),
    ...(requestState && { requestState }),
  });

  it("with a state only are sent again as they came", async () => {
    const server = await startStub(
      stubHttp({
        onCall: ({ params }) =>
          params.requestState === "s2" ? ok("done") : asks(undefined, params.requestState ? "s2" : "s1"),
      }),
    );
    const client = connect({ s: server.config });
    expect(renderText((await client.callTool("s", "t")).content)).toBe("done");
  });

  it("end after ten, and at a question of a kind this client does not offer", async () => {
    const question = {
      method: "elicitation/create",
      params: { message: "?", requestedSchema: { type: "object", properties: {} } },
    };
    const server = await startStub(
      stubHttp({
        onCall: ({ params }) =>
          asks({ q: params.name === "sampling" ? { method: "sampling/createMessage", params: {} } : question }),
      }),
    );
    let asked = 0;
    const elicitation = () => {
      asked++;
      return { action: "accept" as const };
    };
    const client = connect({ s: server.config }, { elicitation });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "too_many_rounds" });
    expect(asked).toBe(11);
    await expect(client.callTool("s", "sampling")).rejects.toMatchObject({ code: "unsupported_question" });
  });
});

describe("answers that break the rules", () => {
  it("fail their own call only; unknown content is kept", async () => {
    const server = await startStub(
      stubHttp({
        onCall: ({ params }, reply) => {
          if (params.name === "500") return reply.http(500, {}, "broken");
          if (params.name === "html") return reply.http(200, { "content-type": "text/html" }, "<html>");
          if (params.name === "text") return { content: "hello" };
          if (params.name === "structured") return { structuredContent: { a: 1 } };
          return {
            content: [
              { type: "hologram", depth: 3 },
              { type: "text", text: "ok" },
            ],
          };
        },
      }),
    );
    const client = connect({ s: server.config });
    await expect(client.callTool("s", "500")).rejects.toMatchObject({ code: "http_error", maybeExecuted: true });
    await expect(client.callTool("s", "html")).rejects.toMatchObject({ code: "bad_answer" });
    await expect(client.callTool("s", "text")).rejects.toMatchObject({ code: "bad_answer" });
    const structured = await client.callTool("s", "structured");
    expect(renderText(structured.content, structured.structured)).toBe('{"a":1}');
    expect(renderText((await client.callTool("s", "new")).content)).toBe(
      '[content of unknown type "hologram": {"type":"hologram","depth":3}]\nok',
    );
  });
  it("a refused credential is an AuthError and is not tried on the older revision", async () => {
    const server = await start(listen(() => new Response("no", { status: 401 })));
    const client = keep(createClient({ servers: { s: { url: server.url } } }));
    const refused = client.callTool("s", "x");
    await expect(refused).rejects.toMatchObject({ name: "AuthError", code: "unauthorized" });
    await expect(refused).rejects.toThrow("bearer(token) or oauth() of @tenon/client/auth");
    expect(server.requests).toHaveLength(1);
  });
});

describe("the catalog", () => {
  const param = (type: string) => ({ type: "object", properties: { p: { type, "x-mcp-header": "P" } } });

  it("leaves out and reports a tool with a parameter that cannot be a header; a right one becomes one", async () => {
    const tools = [
      { name: "b", inputSchema: param("object") },
      { name: "h", inputSchema: param("string") },
    ];
    const server = await startStub(stubHttp({ tools }));
    const client = connect({ s: server.config });
    expect((await client.listTools()).map(({ wireName }) => wireName)).toEqual(["h"]);
    expect(client.servers()[0]?.problems).toEqual([
      { tool: "b", reason: "p: x-mcp-header is allowed on string, integer, boolean only" },
    ]);
    await client.callTool("s", "h", { p: "v" });
    expect(server.requests.at(-1)?.headers["mcp-param-p"]).toBe("v");
  });

  it("is asked for anew when the server wants a parameter as a header that was none before", async () => {
    let schema: object = { type: "object" };
    const server = await startStub(
      stubHttp({
        tools: () => [{ name: "h", inputSchema: schema }],
        onCall: ({ headers }, reply) => {
          if (headers["mcp-param-p"]) return ok("with header");
          const error = { code: -32_020, message: "header mismatch" };
          reply.http(400, { "content-type": "application/json" }, JSON.stringify({ jsonrpc: "2.0", id: null, error }));
        },
      }),
    );
    const client = connect({ s: server.config });
    await client.listTools();
    schema = param("string");
    expect(renderText((await client.callTool("s", "h", { p: "v" })).content)).toBe("with header");
    expect(server.count("tools/list")).toBe(2);
  });

  it("keeps the names of all its servers, whichever are asked, and says what a wrong one may mean", async () => {
    const one = await startStub(stubHttp({ tools: ["echo", "only"] }));
    const two = await startStub(stubHttp({ tools: ["echo"] }));
    const client = connect({ s1: one.config, s2: two.config });
    expect((await client.listTools()).map(({ name }) => name)).toEqual(["mcp_s1_echo", "mcp_s1_only", "mcp_s2_echo"]);
    expect((await client.listTools("s2")).map(({ name }) => name)).toEqual(["mcp_s2_echo"]);
    await expect(client.dispatch("mcp_s1_ecko")).rejects.toThrow(/did you mean "mcp_s1_echo"/);
    await expect(client.dispatch("zzz")).rejects.toMatchObject({ name: "ConfigError", code: "unknown_tool" });
    await expect(client.callTool("s3", "echo")).rejects.toThrow(/there is no server "s3"; did you mean "s1"/);
  });
});
