import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Client, createClient, type ElicitationRequest, type EventSource, renderText } from "../src/index.ts";
import type { ToolResult } from "../src/types/calls.ts";
import { type Listening, legacy, legacyHandler, listen, modern } from "./servers.ts";

let cleanup: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanup.reverse()) await end();
  cleanup = [];
});
const keep = <T extends Client<never, never> | Client>(client: T): T => {
  cleanup.push(() => client.close());
  return client;
};
async function start(make: () => Promise<Listening>): Promise<Listening> {
  const server = await make();
  cleanup.push(() => server.kill());
  return server;
}
const textOf = (result: ToolResult) => renderText(result.content);

describe.each([
  ["modern", modern],
  ["legacy", legacy],
] as const)("a %s server over HTTP", (era, make) => {
  let server: Listening;
  beforeEach(async () => {
    server = await start(() => make());
  });
  const open = (more: object = {}) => keep(createClient({ servers: { s: { url: server.url } }, ...more }));

  it("is listed and called, by wire name and by model-side name", async () => {
    const client = open();
    const tools = await client.listTools();
    expect(tools.map((tool) => tool.name).slice(0, 3)).toEqual(["mcp_s_add", "mcp_s_ask", "mcp_s_die"]);
    expect(client.servers()).toMatchObject([
      { server: "s", health: "up", era, implementation: { name: "test" }, problems: [] },
    ]);
    const sum = await client.dispatch("mcp_s_add", { a: 1, b: 2 });
    expect(sum).toMatchObject({ isError: false, structured: { sum: 3 } });
    expect(textOf(await client.callTool("s", "echo", { text: "hi" }))).toBe("hi");
  });

  it("is connected once, even by parallel first calls", async () => {
    const client = open();
    await Promise.all([1, 2, 3].map((n) => client.callTool("s", "echo", { text: `${n}` })));
    const methods = server.requests.map(({ body }) => body.method);
    expect(methods.filter((method) => method === "server/discover")).toHaveLength(1);
    expect(methods.filter((method) => method === "initialize").length).toBe(era === "legacy" ? 1 : 0);
  });

  it("reports progress and logs with server and tool, and does not mix parallel calls", async () => {
    const seen: [string, string, EventSource][] = [];
    const client = open({
      events: {
        onProgress: (event: { message: string; percent: number }, source: EventSource) =>
          seen.push(["progress", `${event.message} ${event.percent}`, source]),
        onLog: (event: { data: { label: string }; logger: string }, source: EventSource) =>
          seen.push([event.logger, event.data.label, source]),
      },
    });
    const own: string[] = [];
    await Promise.all([
      client.callTool("s", "work", { label: "a", steps: 3, ms: 20 }, { onProgress: (e) => own.push(`${e.percent}`) }),
      client.callTool("s", "work", { label: "b", steps: 3, ms: 15 }),
    ]);
    expect(own).toEqual(["33.3", "66.7", "100"]);
    expect(seen.filter(([kind]) => kind === "progress")).toHaveLength(6);
    expect(seen.filter(([kind]) => kind === "worker")).toHaveLength(6);
    const ids = (label: string) =>
      new Set(seen.filter(([, what]) => what.startsWith(label)).map(([, , source]) => source.callId));
    expect(ids("a").size).toBe(1);
    expect(ids("b").size).toBe(1);
    expect(ids("a")).not.toEqual(ids("b"));
    expect(seen.every(([, , source]) => source.server === "s" && source.tool === "work")).toBe(true);
  });

  it("goes on when an event handler throws", async () => {
    const errors: unknown[] = [];
    const boom = () => {
      throw new Error("boom");
    };
    const client = open({ events: { onProgress: boom, onLog: boom, onHandlerError: (e: unknown) => errors.push(e) } });
    expect(textOf(await client.callTool("s", "work", { label: "a", steps: 1, ms: 1 }))).toBe("a");
    expect(errors).toHaveLength(2);
  });

  it("has its questions answered by the handler, and an answer that does not fit asked for again", async () => {
    const asked: [ElicitationRequest, EventSource][] = [];
    const client = open({
      elicitation: (request: ElicitationRequest, source: EventSource) => {
        asked.push([request, source]);
        return { action: "accept", content: asked.length === 1 ? {} : { ok: true } };
      },
    });
    expect(client.elicitation).toBe("callback");
    expect(textOf(await client.callTool("s", "ask"))).toBe("accept:true");
    expect(asked).toHaveLength(2);
    expect(asked[0]?.[0]).toMatchObject({
      mode: "form",
      message: "Sure?",
      fields: [{ kind: "boolean", name: "ok", title: "Really", required: true }],
    });
    expect(asked[0]?.[1]).toMatchObject({ server: "s", tool: "ask" });
    expect(asked[0]?.[0]).not.toHaveProperty("attempt");
    expect(asked[1]?.[0]).toEqual({
      ...asked[0]?.[0],
      attempt: 2,
      problems: [{ field: "ok", message: "is required", problem: { code: "required" } }],
    });
  });

  it("puts a question to the handler three times, then fails the call with what was wrong", async () => {
    const attempts: unknown[] = [];
    const client = open({
      elicitation: ({ attempt, problems }: ElicitationRequest) => {
        attempts.push([attempt, problems?.map(({ field, message }) => [field, message])]);
        return { action: "accept", content: { ok: "maybe" } };
      },
    });
    await expect(client.callTool("s", "ask")).rejects.toMatchObject({ code: "invalid_answer", maybeExecuted: true });
    const wrong = [["ok", 'must be true or false, got "maybe"']];
    expect(attempts).toEqual([
      [undefined, undefined],
      [2, wrong],
      [3, wrong],
    ]);
  });

  it("tells the handler when its answer is none at all", async () => {
    const told: unknown[] = [];
    const client = open({
      elicitation: ({ problems }: ElicitationRequest) => {
        told.push(problems?.[0]?.message);
        return told.length === 1 ? ({ action: "yes" } as never) : { action: "decline" };
      },
    });
    await client.callTool("s", "ask");
    expect(told).toEqual([undefined, 'action must be accept, decline or cancel, got "yes"']);
  });

  it("does not count the time a person takes", async () => {
    const client = open({
      elicitation: async () => {
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        return { action: "decline" };
      },
    });
    expect(textOf(await client.callTool("s", "ask", {}, { timeoutMs: 1_500 }))).toBe("decline:undefined");
  });

  it("makes a handler that throws the error of the call", async () => {
    const client = open({
      elicitation: () => {
        throw new Error("no terminal");
      },
    });
    await expect(client.callTool("s", "ask")).rejects.toMatchObject({ code: "handler_failed" });
    expect(textOf(await client.callTool("s", "echo", { text: "still" }))).toBe("still");
  });

  it("ends a silent call, keeps one that reports, and ends that too at its total", async () => {
    const client = open();
    await expect(client.callTool("s", "wait", { ms: 2_000 }, { timeoutMs: 100 })).rejects.toMatchObject({
      name: "ConnectionError",
      code: "timeout",
      maybeExecuted: true,
    });
    const work = { label: "x", steps: 6, ms: 150 };
    expect(textOf(await client.callTool("s", "work", work, { timeoutMs: 700 }))).toBe("x");
    await expect(client.callTool("s", "work", work, { timeoutMs: 700, totalTimeoutMs: 400 })).rejects.toMatchObject({
      code: "timeout",
    });
  });

  it("stops when the caller aborts", async () => {
    const client = open();
    const signal = AbortSignal.timeout(50);
    await expect(client.callTool("s", "wait", { ms: 2_000 }, { signal })).rejects.toMatchObject({ code: "cancelled" });
    const before = AbortSignal.abort();
    await expect(client.callTool("s", "echo", { text: "x" }, { signal: before })).rejects.toMatchObject({
      code: "cancelled",
      maybeExecuted: false,
    });
  });

  it("gives a typed error for an unknown tool, with the server's code", async () => {
    const client = open();
    const outcome = client.callTool("s", "nope");
    await expect(outcome).rejects.toMatchObject({
      name: "ProtocolError",
      code: "unknown_tool",
      data: { code: -32602 },
    });
  });

  it("is an error result, or an error where asked", async () => {
    expect(await open().callTool("s", "fail")).toMatchObject({ isError: true });
    await expect(open({ toolErrors: "throw" }).callTool("s", "fail")).rejects.toMatchObject({
      name: "ExecutionError",
      message: "rate limited",
    });
  });

  it("keeps per-call headers to that call and beside the configured ones", async () => {
    const client = keep(
      createClient({
        servers: { s: { url: server.url, headers: { Authorization: "Bearer server", "X-Team": "a" } } },
        interceptors: [
          (request, next) =>
            next(
              request.args.text === "1"
                ? request.with({ headers: { authorization: "Bearer user", "X-Call": "1" } })
                : request,
            ),
        ],
      }),
    );
    await client.callTool("s", "echo", { text: "1" });
    await client.callTool("s", "echo", { text: "2" });
    const calls = server.requests.filter(({ body }) => body.method === "tools/call").map(({ headers }) => headers);
    expect(calls[0]).toMatchObject({ authorization: "Bearer user", "x-call": "1", "x-team": "a" });
    expect(calls[1]).toMatchObject({ authorization: "Bearer server", "x-team": "a" });
    expect(calls[1]?.["x-call"]).toBeUndefined();
    const others = server.requests.filter(({ body }) => body.method !== "tools/call");
    expect(others.every(({ headers }) => headers.authorization === "Bearer server" && !headers["x-call"])).toBe(true);
    const sessions = new Set(calls.map((headers) => headers["mcp-session-id"]));
    expect(sessions.size).toBe(1);
  });

  it("reads resources and prompts", async () => {
    const client = open();
    expect((await client.listResources()).map((resource) => resource.uri)).toEqual([
      "company://policy",
      "company://logo",
    ]);
    const [policy, logo] = await client.readResources("s");
    expect(policy?.asString()).toBe("# Policy");
    expect([...(logo?.asBytes() ?? [])]).toEqual([1, 2, 3]);
    expect(await client.readResources("s", ["company://policy"])).toHaveLength(1);
    await expect(client.readResources("s", ["company://none"])).rejects.toMatchObject({ code: "rpc_error" });
    expect(await client.listPrompts()).toMatchObject([
      { name: "hello", arguments: [{ name: "name", required: true }] },
    ]);
    expect(await client.getPrompt("s", "hello", { name: "Ann" })).toEqual([
      { role: "user", content: { type: "text", text: "Hello Ann" } },
    ]);
  });

  it("works again after it was started anew, whatever it forgot", async () => {
    const client = open();
    await client.callTool("s", "echo", { text: "1" });
    await server.kill();
    await expect(client.callTool("s", "echo", { text: "2" })).rejects.toMatchObject({
      code: "unreachable",
      retryable: true,
      maybeExecuted: false,
    });
    expect(client.servers()).toMatchObject([{ health: "down", error: { code: "unreachable" } }]);
    const again = await start(() => make(server.port));
    expect(textOf(await client.callTool("s", "echo", { text: "3" }))).toBe("3");
    await again.kill();
    await start(() => make(server.port));
    // nobody noticed that it was away: a session is replaced, and the call is sent once
    expect(textOf(await client.callTool("s", "echo", { text: "4" }))).toBe("4");
    expect(client.servers()).toMatchObject([{ health: "up" }]);
  });

  it("is lost when it dies during a call", async () => {
    const client = open();
    await client.listTools();
    const call = client.callTool("s", "wait", { ms: 5_000 });
    const lost = expect(call).rejects.toMatchObject({ code: "lost", maybeExecuted: true, server: "s" });
    const arrived = () => server.requests.some(({ body }) => body.method === "tools/call");
    await expect.poll(arrived, { timeout: 20_000, interval: 5 }).toBe(true);
    await server.kill();
    await lost;
  });
});

describe("a server of the older revision that breaks when asked for the newer one", () => {
  it.each([
    ["an HTTP 500", () => new Response("oops", { status: 500 })],
    ["a web page", () => new Response("<html></html>", { headers: { "content-type": "text/html" } })],
    ["a 404", () => new Response("nothing here", { status: 404 })],
  ])("with %s still works", async (_, broken) => {
    const sessions = legacyHandler();
    const server = await start(() =>
      listen(async (request) =>
        (await request.clone().text()).includes("server/discover") ? broken() : sessions(request),
      ),
    );
    const client = keep(createClient({ servers: { s: { url: server.url } } }));
    expect(textOf(await client.callTool("s", "echo", { text: "x" }))).toBe("x");
  });
});

describe("a server that is down", () => {
  it("does not spoil the others, and joins when it comes up", async () => {
    const up = await start(() => modern());
    const parked = await modern();
    await parked.kill();
    const states: string[] = [];
    const client = keep(
      createClient({
        servers: { down: { url: parked.url }, up: { url: up.url } },
        events: { onServerState: ({ server, health }) => void states.push(`${server} ${health}`) },
      }),
    );
    const tools = await client.listTools();
    expect(new Set(tools.map((tool) => tool.server))).toEqual(new Set(["up"]));
    expect(client.servers()[0]).toMatchObject({ server: "down", health: "down", error: { code: "unreachable" } });
    await expect(client.callTool("down", "echo", { text: "x" })).rejects.toThrow(parked.url);
    await start(() => modern(parked.port));
    expect(new Set((await client.listTools()).map((tool) => tool.server))).toEqual(new Set(["down", "up"]));
    expect(states).toContain("down down");
    expect(states.at(-1)).toBe("down up");
  });

  it("is said once on stderr where nobody listens, and again after it was there", async () => {
    const parked = await modern();
    await parked.kill();
    const stderr = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    cleanup.push(() => stderr.mockRestore());
    const said = () => stderr.mock.calls.map(([line]) => String(line)).filter((line) => line.startsWith("tenon:"));
    const client = keep(createClient({ servers: { stock: { url: parked.url } } }));
    await client.listTools();
    await client.listTools();
    expect(said()).toEqual([
      expect.stringMatching(/^tenon: left out of the list: server "stock" cannot be reached at /),
    ]);
    const back = await start(() => modern(parked.port));
    await client.listTools();
    await back.kill();
    await expect.poll(() => client.listTools().then(() => said().length)).toBe(2);
  });

  it("is an error of listTools where it is required", async () => {
    const client = keep(createClient({ servers: { s: { url: "http://127.0.0.1:9/mcp", required: true } } }));
    await expect(client.listTools()).rejects.toMatchObject({ code: "unreachable", server: "s" });
  });

  it("that never answers is given up within the budget", async () => {
    const mute = await start(() => listen(() => new Promise<Response>(() => {})));
    const client = keep(createClient({ servers: { s: { url: mute.url, connectTimeoutMs: 300 } } }));
    const began = Date.now();
    await expect(client.callTool("s", "x")).rejects.toMatchObject({ code: "unreachable" });
    expect(Date.now() - began).toBeLessThan(1_000);
  });
});

describe("closing", () => {
  it("ends running calls, is idempotent, and leaves a typed error", async () => {
    const server = await start(() => modern());
    const client = createClient({ servers: { s: { url: server.url } } });
    await client.listTools();
    const call = client.callTool("s", "wait", { ms: 5_000 });
    const failed = expect(call).rejects.toMatchObject({ code: "closed" });
    await new Promise((resolve) => setTimeout(resolve, 50));
    await Promise.all([client.close(), client.close()]);
    await failed;
    await expect(client.callTool("s", "echo")).rejects.toMatchObject({ name: "ConnectionError", code: "closed" });
    await expect(client.listTools()).rejects.toMatchObject({ code: "closed" });
  });
});
