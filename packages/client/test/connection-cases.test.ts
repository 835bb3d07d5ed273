// Cases from the field, by their ids: connections that misbehave (C), and a result that is too large (B4).
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { LogEvent } from "../src/index.ts";
import { renderText } from "../src/index.ts";
import {
  ALL_STUBS,
  closeAfterEach,
  connect,
  isAlive,
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

it("a credential whose scope is too narrow is an AuthError, and the connection lives", async () => {
  const headers = { "www-authenticate": 'Bearer error="insufficient_scope", scope="orders:write"' };
  const server = await start(stubHttp({ onCall: once((_, reply) => reply.http(403, headers, "no")) }));
  const client = connect({ s: server.config });
  await client.listTools();
  const error = await client.callTool("s", "t").catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: "AuthError", code: "forbidden" });
  expect(String(error)).toContain("orders:write");
  expect(renderText((await client.callTool("s", "t")).content)).toBe("fine");
  expect(server.count("server/discover")).toBe(1);
});

describe("a child process", () => {
  /** A whole program; `more` runs before it reads. */
  const program = (onCall: string, more = "") => `${more}
    const say = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result: { resultType: "complete", ...result } }));
    require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
      const { id, method } = JSON.parse(line);
      if (method === "server/discover") say(id, { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } });
      else if (method === "tools/list") say(id, { tools: [{ name: "t", inputSchema: { type: "object" } }], ttlMs: 9e5, cacheScope: "private" });
      else if (method === "tools/call") { ${onCall} }
      else if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "no" } }));
    });`;
  const node = (code: string) => ({ command: process.execPath, args: ["-e", code], connectTimeoutMs: 15_000 });

  it("that exits is gone although a process of its own holds its pipes", async () => {
    const grandchild =
      'require("node:child_process").spawn(process.execPath, ["-e", "setTimeout(() => {}, 20000)"], { stdio: "inherit", detached: true }).unref();';
    const client = connect({ s: node(program("process.exit(9)", grandchild)) });
    await client.listTools();
    const began = performance.now();
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "lost", maybeExecuted: true });
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it("that is refused in the handshake is gone when its client is closed", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "tenon-")), "pid");
    const save = `require("node:fs").writeFileSync(${JSON.stringify(file)}, String(process.pid));`;
    const answer = '{"jsonrpc":"2.0","id":0,"result":{}}';
    const client = connect({
      s: { ...node(`${save} setInterval(() => console.log('${answer}'), 20)`), connectTimeoutMs: 4_000 },
    });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ server: "s" });
    await client.close();
    expect(isAlive(Number(readFileSync(file, "utf8")))).toBe(false);
  });

  it("that takes most of its time to start, and speaks the newer revision only, is connected", async () => {
    const late = node(
      `setTimeout(() => { ${program('say(id, { content: [{ type: "text", text: "late" }] })')} }, 3_000)`,
    );
    const client = connect({ s: { ...late, connectTimeoutMs: 5_000 } });
    expect(renderText((await client.callTool("s", "t")).content)).toBe("late");
  }, 20_000);

  it.each([
    ["exits", node("process.exit(3)"), "its process exited with code 3"],
    ["is ended", node('process.kill(process.pid, "SIGKILL")'), "its process was ended by SIGKILL"],
    ["has no folder to run in", { ...node("1"), cwd: "/no/such/folder" }, 'its cwd "/no/such/folder" does not exist'],
  ])("that %s is reported so", async (_, config, reason) => {
    const error = await connect({ s: config })
      .callTool("s", "t")
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "unreachable", maybeExecuted: false });
    expect(String(error)).toContain(reason);
    expect(String(error)).not.toContain("may have taken effect");
  });
});

it("a server that comes back with the older revision, behind sockets that live on, is greeted anew", async () => {
  let era: "modern" | "legacy" = "modern";
  const stubs = { modern: await start(stubHttp()), legacy: await start(stubHttp({ era: "legacy" })) };
  const { request } = await import("node:http");
  // a proxy in front of both: its own sockets stay open
  const front = await start(
    stubHttp({
      onHttp: (req, res, body) => {
        const onwards = request(stubs[era].url, { method: req.method, headers: req.headers }, (answer) => {
          res.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(res);
        });
        onwards.on("error", () => res.destroy());
        onwards.end(body);
        return true;
      },
    }),
  );
  const client = connect({ s: front.config });
  await client.callTool("s", "t");
  era = "legacy";
  expect(renderText((await client.callTool("s", "t", { n: 1 })).content)).toBe('{"n":1}');
  expect(client.servers()).toMatchObject([{ era: "legacy" }]);
  era = "modern";
  expect(renderText((await client.callTool("s", "t", { n: 2 })).content)).toBe('{"n":2}');
});

it.each([
  ["breaks", 0],
  ["is answered 503 by who stands in front", 503],
])("a server of both revisions is not taken for an old one when the first question %s", async (_, status) => {
  const stubs = { modern: await start(stubHttp()), legacy: await start(stubHttp({ era: "legacy" })) };
  const { request } = await import("node:http");
  let questions = 0;
  const front = await start(
    stubHttp({
      onHttp: (req, res, body) => {
        const asks = req.headers["mcp-method"] === "server/discover";
        if (asks) questions += 1;
        if (asks && questions === 1) {
          if (status === 0) res.destroy();
          else res.writeHead(status).end();
          return true;
        }
        const era = req.headers["mcp-method"] === undefined ? "legacy" : "modern";
        const onwards = request(stubs[era].url, { method: req.method, headers: req.headers }, (answer) => {
          res.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(res);
        });
        onwards.on("error", () => res.destroy());
        onwards.end(body);
        return true;
      },
    }),
  );
  const client = connect({ s: front.config });
  expect(renderText((await client.callTool("s", "t", { n: 1 })).content)).toBe('{"n":1}');
  expect(client.servers()).toMatchObject([{ era: "modern" }]);
});
