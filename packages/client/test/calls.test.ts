import { ConnectionError, deserializeError, serializeError } from "@tenon/core";
import { afterEach, describe, expect, it } from "vitest";
import {
  type CallDriver,
  type Client,
  createClient,
  type ElicitationAnswer,
  type Interceptor,
  type Leg,
  renderText,
  type WireResult,
} from "../src/index.ts";
import { type Listening, legacy, listen, modern, stub } from "./servers.ts";

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
const ok = (text: string) => ({ resultType: "complete", content: [{ type: "text", text }] });

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
    expect(stored).toMatchObject({ name: "ProtocolError", code: "rpc_error", server: "s" });
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
    const server = await start(
      stub((_, params) =>
        params.requestState === "s2" ? ok("done") : asks(undefined, params.requestState ? "s2" : "s1"),
      ),
    );
    const client = keep(createClient({ servers: { s: { url: server.url } } }));
    expect(renderText((await client.callTool("s", "t")).content)).toBe("done");
  });

  it("end after ten, and at a question of a kind this client does not offer", async () => {
    const question = {
      method: "elicitation/create",
      params: { message: "?", requestedSchema: { type: "object", properties: {} } },
    };
    const server = await start(
      stub((_, params) =>
        asks({ q: params.name === "sampling" ? { method: "sampling/createMessage", params: {} } : question }),
      ),
    );
    let asked = 0;
    const elicitation = () => {
      asked++;
      return { action: "accept" as const };
    };
    const client = keep(createClient({ servers: { s: { url: server.url } }, elicitation }));
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "too_many_rounds" });
    expect(asked).toBe(11);
    await expect(client.callTool("s", "sampling")).rejects.toMatchObject({ code: "unsupported_question" });
  });
});

describe("answers that break the rules", () => {
  it("fail their own call only; unknown content is kept", async () => {
    const server = await start(
      stub((_, { name }) => {
        if (name === "202") return new Response(null, { status: 202 });
        if (name === "cut") return new Response(": hi\n\n", { headers: { "content-type": "text/event-stream" } });
        if (name === "500") return new Response("broken", { status: 500 });
        if (name === "html") return new Response("<html>", { headers: { "content-type": "text/html" } });
        if (name === "text") return { resultType: "complete", content: "hello" };
        if (name === "structured") return { resultType: "complete", structuredContent: { a: 1 } };
        return {
          resultType: "complete",
          content: [
            { type: "hologram", depth: 3 },
            { type: "text", text: "ok" },
          ],
        };
      }),
    );
    const client = keep(createClient({ servers: { s: { url: server.url } } }));
    const began = Date.now();
    await expect(client.callTool("s", "202")).rejects.toMatchObject({ code: "lost" });
    await expect(client.callTool("s", "cut")).rejects.toMatchObject({ code: "lost", maybeExecuted: true });
    expect(Date.now() - began).toBeLessThan(1_000);
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
    await expect(client.callTool("s", "x")).rejects.toMatchObject({ name: "AuthError", code: "unauthorized" });
    expect(server.requests).toHaveLength(1);
  });
});

describe("the catalog", () => {
  const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: "object" }, ...more });
  const page = (tools: unknown[], more: object = {}) => ({
    resultType: "complete",
    ttlMs: 60_000,
    cacheScope: "private",
    tools,
    ...more,
  });
  const lists = (list: (cursor: unknown) => unknown) =>
    stub((method, params) => (method === "tools/list" ? list(params.cursor) : ok(String(params.name))));
  const open = (...urls: string[]): Client =>
    keep(createClient({ servers: Object.fromEntries(urls.map((url, i) => [`s${i + 1}`, { url }])) }));

  it("leaves out and reports malformed tools, keeps the rest", async () => {
    const header = (type: string) => ({
      inputSchema: { type: "object", properties: { p: { type, "x-mcp-header": "P" } } },
    });
    const server = await start(
      lists(() =>
        page([{ name: "a" }, tool("good"), 7, tool("good"), tool("b", header("object")), tool("h", header("string"))]),
      ),
    );
    const client = open(server.url);
    expect((await client.listTools()).map(({ wireName }) => wireName)).toEqual(["good", "h"]);
    expect(client.servers()[0]?.problems).toEqual([
      { tool: "a", reason: "it has no inputSchema object" },
      { tool: "#3", reason: "the definition is not an object" },
      { tool: "good", reason: "the server lists it twice, with one definition" },
      { tool: "b", reason: "p: x-mcp-header is allowed on string, integer, boolean only" },
    ]);
    await client.callTool("s1", "h", { p: "v" });
    expect(server.requests.at(-1)?.headers["mcp-param-p"]).toBe("v");
  });

  it("asks for the definition when the server wants a parameter as a header", async () => {
    const param = tool("h", {
      inputSchema: { type: "object", properties: { p: { type: "string", "x-mcp-header": "P" } } },
    });
    const server = await start(
      stub((method, _, request) => {
        if (method === "tools/list") return page([param]);
        if (request.headers.get("mcp-param-p")) return ok("with header");
        const error = { code: -32_020, message: "header mismatch" };
        return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 400 });
      }),
    );
    const client = open(server.url);
    expect(renderText((await client.callTool("s1", "h", { p: "v" })).content)).toBe("with header");
  });

  it("gives legal names and calls the original", async () => {
    const names = ["admin.tools/list", "x".repeat(90), "weather 北京"];
    const server = await start(lists(() => page(names.map((name) => tool(name)))));
    const client = open(server.url);
    const tools = await client.listTools();
    expect(tools.every(({ name }) => /^[A-Za-z0-9_-]{1,64}$/.test(name))).toBe(true);
    expect(new Set(tools.map(({ name }) => name)).size).toBe(3);
    expect((await open(server.url).listTools()).map(({ name }) => name)).toEqual(tools.map(({ name }) => name));
    const [admin] = tools;
    expect(renderText((await client.dispatch(admin?.name ?? "")).content)).toBe("admin.tools/list");
  });

  it("keeps tools of one name on two servers apart; plain naming refuses and names both", async () => {
    const one = await start(lists(() => page([tool("echo"), tool("only")])));
    const two = await start(lists(() => page([tool("echo")])));
    const client = open(one.url, two.url);
    expect((await client.listTools()).map(({ name }) => name)).toEqual(["mcp_s1_echo", "mcp_s1_only", "mcp_s2_echo"]);
    expect((await client.listTools("s2")).map(({ name }) => name)).toEqual(["mcp_s2_echo"]);
    await expect(client.dispatch("mcp_s1_ecko")).rejects.toThrow(/did you mean "mcp_s1_echo"/);
    await expect(client.dispatch("zzz")).rejects.toMatchObject({ name: "ConfigError", code: "unknown_tool" });
    await expect(client.callTool("s3", "echo")).rejects.toThrow(/there is no server "s3"; did you mean "s1"/);
    const plain = keep(createClient({ servers: { a: { url: one.url }, b: { url: two.url } }, naming: "plain" }));
    await expect(plain.listTools()).rejects.toThrow(/"echo" of server "a" and "echo" of server "b"/);
  });

  it("follows an empty cursor and cuts a loop", async () => {
    const pages = await start(
      lists((cursor) => (cursor === undefined ? page([tool("a")], { nextCursor: "" }) : page([tool("b")]))),
    );
    expect((await open(pages.url).listTools()).map(({ wireName }) => wireName)).toEqual(["a", "b"]);
    const loop = await start(lists(() => page([tool("a")], { nextCursor: "same" })));
    const client = open(loop.url);
    expect(await client.listTools()).toEqual([]);
    expect(client.servers()[0]?.error?.code).toBe("pagination_loop");
    const strict = keep(createClient({ servers: { s: { url: loop.url, required: true } } }));
    await expect(strict.listTools()).rejects.toMatchObject({ name: "ProtocolError", code: "pagination_loop" });
  });

  it("is cached while the server says so", async () => {
    const kept = await start(lists(() => page([tool("a")])));
    const client = open(kept.url);
    await client.listTools();
    await client.listTools();
    expect(kept.requests.filter(({ body }) => body.method === "tools/list")).toHaveLength(1);
    const stale = await start(lists(() => page([tool("a")], { ttlMs: 0 })));
    const other = open(stale.url);
    await other.listTools();
    await other.listTools();
    expect(stale.requests.filter(({ body }) => body.method === "tools/list")).toHaveLength(2);
  });
});
