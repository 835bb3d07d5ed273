// Cases from the field, by their ids: connections that misbehave (C), and a result that is too large (B4).
import { describe, expect, it } from "vitest";
import type { LogEvent } from "../src/index.ts";
import { renderText } from "../src/index.ts";
import {
  ALL_STUBS,
  closeAfterEach,
  connect,
  STUBS,
  type StubHandler,
  start,
  stubHttp,
  stubStdio,
} from "./stub/index.ts";

closeAfterEach();
const MIB = 1024 * 1024;
const once =
  (first: StubHandler): StubHandler =>
  (request, reply) =>
    request.nth === 1 ? first(request, reply) : { content: [{ type: "text", text: "fine" }] };

describe("C1: a legacy HTTP server that forgets its sessions", () => {
  it("gets one new initialize and the call once more", async () => {
    const server = await start(stubHttp({ era: "legacy" }));
    const client = connect({ s: server.config });
    await client.callTool("s", "t");
    server.forget();
    expect(renderText((await client.callTool("s", "t", { n: 1 })).content)).toBe('{"n":1}');
    expect(server.count("initialize")).toBe(2);
    expect(server.sessions).toBe(2);
  });

  it("is a typed error when it forgets the new one too", async () => {
    const server = await start(stubHttp({ era: "legacy", onCall: (_, reply) => reply.http(404, {}, "gone") }));
    const client = connect({ s: server.config });
    await client.listTools();
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "session_lost", maybeExecuted: false });
    expect(server.count("initialize")).toBe(2);
    expect(server.count("tools/call")).toBe(2);
  });
});

describe.each(["modern", "legacy"] as const)("C2: an HTTP answer without a response, revision %s", (era) => {
  it.each<[string, StubHandler]>([
    [
      "a stream that ends",
      (_, reply) => {
        reply.stream();
        reply.end();
      },
    ],
    [
      "a stream that dies",
      (_, reply) => {
        reply.stream();
        setTimeout(() => reply.die(), 20);
      },
    ],
    [
      "a stream that ends after an event with an id",
      (_, reply) => {
        reply.stream();
        reply.raw("id: 1\ndata:\n\n");
        reply.end();
      },
    ],
    ["a 202", (_, reply) => reply.http(202)],
    ["an empty 200", (_, reply) => reply.http(200, { "content-type": "application/json" })],
    [
      "half a body",
      (_, reply) => {
        reply.http(200, { "content-type": "application/json", "content-length": "99" }, "{");
        reply.die();
      },
    ],
  ])("%s is rejected within a second", async (name, first) => {
    const server = await start(stubHttp({ era, onCall: once(first) }));
    const client = connect({ s: server.config });
    await client.listTools();
    const began = performance.now();
    const error = await client.callTool("s", "t").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: name === "an empty 200" ? "bad_answer" : "lost", maybeExecuted: true });
    // a second, and what a loaded machine adds
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(renderText((await client.callTool("s", "t")).content)).toBe("fine");
  });
});

describe("C4: headers of one call", () => {
  it.each(["modern", "legacy"] as const)(
    "are merged with the configured ones, in one session, and do not leak (%s)",
    async (era) => {
      const server = await start(stubHttp({ era }));
      const client = connect(
        { s: { ...server.config, headers: { "X-Team": "a", Authorization: "Bearer server" } } },
        {
          interceptors: [
            (request, next) => next(request.args.own ? request.with({ headers: { "X-Call": "1" } }) : request),
          ],
        },
      );
      await client.callTool("s", "t", { own: true });
      await client.callTool("s", "t", {}, { headers: { authorization: "Bearer user" } });
      await client.callTool("s", "t");
      const calls = server.requests.filter(({ method }) => method === "tools/call").map(({ headers }) => headers);
      expect(calls.map((headers) => headers["x-call"])).toEqual(["1", undefined, undefined]);
      expect(calls.map((headers) => headers["x-team"])).toEqual(["a", "a", "a"]);
      expect(calls.map(({ authorization }) => authorization)).toEqual([
        "Bearer server",
        "Bearer user",
        "Bearer server",
      ]);
      expect(new Set(calls.map((headers) => headers["mcp-session-id"])).size).toBe(1);
      expect(server.sessions).toBe(era === "legacy" ? 1 : 0);
    },
  );

  it("cannot change what the message itself says", async () => {
    const server = await start(stubHttp());
    const client = connect({ s: server.config });
    await client.callTool("s", "t", {}, { headers: { "mcp-method": "tools/list", "Content-Type": "text/plain" } });
    const call = server.requests.find(({ method }) => method === "tools/call");
    expect(call?.headers).toMatchObject({ "mcp-method": "tools/call", "content-type": "application/json" });
  });
});

describe("C5: a stdio server that exits during a call", () => {
  it.each(["modern", "legacy"] as const)("fails that call once; the next works (%s)", async (era) => {
    const server = await start(stubStdio({ era, onCall: once((_, reply) => reply.die(7)) }));
    const client = connect({ s: server.config });
    const [tool] = await client.listTools();
    await expect(client.dispatch(tool?.name ?? "")).rejects.toMatchObject({ code: "lost", maybeExecuted: true });
    expect(renderText((await client.dispatch(tool?.name ?? "")).content)).toBe("fine");
    expect(server.count("tools/call")).toBe(2);
    expect(server.opened).toBe(2);
  });

  it("is gone as well when it only closes its output", async () => {
    const server = await start(stubStdio({ onCall: once((_, reply) => reply.end()) }));
    const client = connect({ s: server.config });
    await client.listTools();
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "lost", maybeExecuted: true });
    expect(renderText((await client.callTool("s", "t")).content)).toBe("fine");
    await expect.poll(() => server.open, { timeout: 10_000 }).toBe(1);
  });

  it.each([
    ["read-only", { readOnlyHint: true }],
    ["idempotent", { idempotentHint: true }],
  ])("is sent again where the tool says that it is %s", async (_, annotations) => {
    const tool = { name: "t", inputSchema: { type: "object" }, annotations };
    const server = await start(stubStdio({ tools: [tool], onCall: once((_request, reply) => reply.die()) }));
    const client = connect({ s: server.config });
    await client.listTools();
    expect(renderText((await client.callTool("s", "t")).content)).toBe("fine");
    expect(server.count("tools/call")).toBe(2);
  });
});

describe.each(ALL_STUBS)("B4: 30 MB of text in one result, over %s, revision %s", (_, __, stub) => {
  it("fails that call, and the next on the same connection works", async () => {
    const big: StubHandler = () => ({ content: [{ type: "text", text: "x".repeat(30 * MIB) }] });
    const server = await start(stub({ onCall: once(big) }));
    const client = connect({ s: server.config });
    await client.listTools();
    const opened = server.count("server/discover") + server.count("initialize");
    await expect(client.callTool("s", "t")).rejects.toThrow(/result too large \(limit 16777216 bytes\)/);
    expect(renderText((await client.callTool("s", "t")).content)).toBe("fine");
    expect(server.count("server/discover") + server.count("initialize")).toBe(opened);
    if ("command" in server.config) expect(server.opened).toBe(1);
  });

  it("is a limit that can be set, for an event of a stream too", async () => {
    const text = "x".repeat(MIB);
    const server = await start(
      stub({
        onCall: once((_request, reply) => {
          reply.notify("notifications/message", { level: "info", data: "first" });
          return { content: [{ type: "text", text }] };
        }),
      }),
    );
    const client = connect({ s: { ...server.config, maxResponseBytes: 100_000 } });
    await client.listTools();
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "too_large", data: { limit: 100_000 } });
    expect(renderText((await client.callTool("s", "t")).content)).toBe("fine");
    const wide = connect({ s: { ...server.config, maxResponseBytes: 2 * MIB } });
    expect(renderText((await wide.callTool("s", "t")).content)).toBe("fine");
  });
});

describe.each(ALL_STUBS)("forty calls at once, over %s, revision %s", (_, __, stub) => {
  it("all come back, and node warns of nothing", async () => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error) => void warnings.push(message);
    process.on("warning", onWarning);
    try {
      const server = await start(stub({ delayMs: 20 }));
      const client = connect({ s: server.config });
      await client.listTools();
      const results = await Promise.all(Array.from({ length: 40 }, (_none, n) => client.callTool("s", "t", { n })));
      expect(results.map(({ content }) => renderText(content))).toEqual(results.map((_none, n) => `{"n":${n}}`));
      await new Promise((resolve) => setTimeout(resolve, 20)); // warnings come a little later
    } finally {
      process.off("warning", onWarning);
    }
    expect(warnings).toEqual([]);
  });
});

describe.each(STUBS)("over %s, between the messages", (transport, stub) => {
  it("words that are no message are passed over", async () => {
    if (transport === "http") return;
    const server = await start(
      stub({
        onCall: (_, reply) => {
          reply.raw('Loading…\n\n{"not": "a message"}\n42\n{"jsonrpc":"2.0","id":999,"result":{}}\n');
          return { content: [] };
        },
      }),
    );
    expect(await connect({ s: server.config }).callTool("s", "t")).toMatchObject({ content: [] });
  });
});

describe("the standard error of a child process", () => {
  it("becomes log events, line by line, where somebody listens", async () => {
    const logs: [LogEvent, string][] = [];
    const onStderr: StubHandler = (_, reply) => {
      reply.stderr("first\nsecond ");
      reply.stderr("half\n");
      return { content: [] };
    };
    const server = await start(stubStdio({ onCall: onStderr }));
    const client = connect(
      { s: server.config },
      { events: { onLog: (event, source) => void logs.push([event, source.server]) } },
    );
    await client.callTool("s", "t");
    await expect.poll(() => logs).toHaveLength(2);
    expect(logs).toEqual([
      [{ level: "info", logger: "stderr", data: "first" }, "s"],
      [{ level: "info", logger: "stderr", data: "second half" }, "s"],
    ]);
  });

  it("is passed on in pieces when a line never ends", async () => {
    const logs: LogEvent[] = [];
    const server = await start(
      stubStdio({
        onCall: (_, reply) => {
          reply.stderr("x".repeat(20_000));
          return { content: [] };
        },
      }),
    );
    await connect({ s: server.config }, { events: { onLog: (event) => void logs.push(event) } }).callTool("s", "t");
    await expect.poll(() => logs.length).toBeGreaterThan(0);
    for (const { data } of logs) expect(String(data).length).toBeLessThanOrEqual(8_000);
  });
});
