// How an HTTP server is reached: redirects, busy servers, proxies, sockets, certificates, the first transport.
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect as connectTo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { proxyFor } from "../src/connection/proxy.ts";
import { retryAfterMs } from "../src/connection/time.ts";
import { renderText } from "../src/index.ts";
import { closeAfterEach, connect, start, stubHttp } from "./stub/index.ts";
import { startSse } from "./stub/sse.ts";
import { TEST_CERT, TEST_KEY } from "./stub/tls.ts";

closeAfterEach();

describe("a redirect", () => {
  it("within the origin is followed with method and body", async () => {
    const server = await start(
      stubHttp({
        onHttp: (req, res) => {
          if (req.url !== "/mcp") return false;
          res.writeHead(req.headers["mcp-method"] === "tools/list" ? 301 : 307, { location: "/mcp/" }).end();
          return true;
        },
      }),
    );
    const client = connect({ s: { ...server.config, headers: { Authorization: "Bearer a" } } });
    expect(await client.listTools()).toHaveLength(1);
    expect(renderText((await client.callTool("s", "t", { n: 1 })).content)).toBe('{"n":1}');
    expect(server.hits.filter(({ path }) => path === "/mcp/").every(({ method }) => method === "POST")).toBe(true);
  });

  it("to another origin is refused with both addresses, and nothing is sent there", async () => {
    const other = await start(stubHttp());
    const server = await start(
      stubHttp({
        onHttp: (req, res) => {
          if (req.headers["mcp-method"] !== "tools/call") return false;
          res.writeHead(307, { location: `${other.url}?x=1` }).end();
          return true;
        },
      }),
    );
    const client = connect({ s: { ...server.config, headers: { Authorization: "Bearer secret" } } });
    const error: unknown = await client.callTool("s", "t").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "redirected", maybeExecuted: false });
    expect(String(error)).toContain(server.url);
    expect(String(error)).toContain(other.url);
    expect(other.hits).toHaveLength(0);
  });

  it("to another origin is what a server that only redirects is reported with", async () => {
    const server = await start(
      stubHttp({
        onHttp: (_, res) => {
          res.writeHead(308, { location: "https://other.example/mcp" }).end();
          return true;
        },
      }),
    );
    const client = connect({ s: server.config });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "redirected" });
    expect(client.servers()[0]?.error?.message).toContain("https://other.example/mcp");
  });

  it("that never ends is given up after three", async () => {
    const server = await start(
      stubHttp({
        onHttp: (req, res) => {
          res.writeHead(307, { location: `${req.url}x` }).end();
          return true;
        },
      }),
    );
    await expect(connect({ s: server.config }).callTool("s", "t")).rejects.toThrow(/more than 3 redirects/);
  });
});

describe("a busy server", () => {
  it.each([429, 503])("with %s and a time to wait is asked once more after it", async (status) => {
    const server = await start(
      stubHttp({
        onCall: (call, reply) => (call.nth === 1 ? reply.http(status, { "retry-after": "1" }) : { content: [] }),
      }),
    );
    const began = Date.now();
    expect(await connect({ s: server.config }).callTool("s", "t")).toMatchObject({ content: [] });
    expect(Date.now() - began).toBeGreaterThanOrEqual(990);
    expect(server.count("tools/call")).toBe(2);
  });

  it("that stays busy, or asks for more time than the call has, is an error with that time", async () => {
    let wait = "1";
    const server = await start(
      stubHttp({ onCall: (_, reply) => reply.http(429, { "retry-after": wait }, "slow down") }),
    );
    const client = connect({ s: server.config });
    const busy = { code: "http_error", retryable: true, maybeExecuted: false };
    await expect(client.callTool("s", "t")).rejects.toMatchObject({
      ...busy,
      data: { status: 429, retryAfterMs: 1_000 },
    });
    expect(server.count("tools/call")).toBe(2);
    wait = "3600";
    const far = client.callTool("s", "t", {}, { timeoutMs: 2_000 });
    await expect(far).rejects.toMatchObject({ ...busy, data: { retryAfterMs: 3_600_000 } });
    expect(server.count("tools/call")).toBe(3);
  });

  it("is not asked again after the caller left", async () => {
    const server = await start(stubHttp({ onCall: (_, reply) => reply.http(503, { "retry-after": "5" }) }));
    const client = connect({ s: server.config });
    await client.listTools();
    await expect(client.callTool("s", "t", {}, { signal: AbortSignal.timeout(100) })).rejects.toMatchObject({
      code: "cancelled",
    });
    expect(server.count("tools/call")).toBe(1);
  });

  it("may give the time as a date", () => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    expect(retryAfterMs("Thu, 01 Jan 2026 00:00:30 GMT", now)).toBe(30_000);
    expect(retryAfterMs("Thu, 01 Jan 1970 00:00:30 GMT", now)).toBe(0);
    expect(retryAfterMs("soon", now)).toBeUndefined();
  });
});

describe("a stream that ends before its answer", () => {
  it("is gone on with where the server offers it, after the time it asks for", async () => {
    const resumed: string[] = [];
    let asked: unknown;
    const server = await start(
      stubHttp({
        era: "legacy",
        onHttp: (req, res) => {
          const last = req.headers["last-event-id"];
          if (req.method !== "GET" || last === undefined) return false;
          resumed.push(String(last));
          const answer = { jsonrpc: "2.0", id: asked, result: { content: [{ type: "text", text: "resumed" }] } };
          res.writeHead(200, { "content-type": "text/event-stream" }).end(`data: ${JSON.stringify(answer)}\n\n`);
          return true;
        },
        onCall: (request, reply) => {
          asked = request.id;
          reply.stream();
          reply.raw("id: e-1\nretry: 300\ndata:\n\n");
          reply.end();
        },
      }),
    );
    const began = Date.now();
    const result = await connect({ s: server.config }).callTool("s", "t");
    expect(renderText(result.content)).toBe("resumed");
    expect(Date.now() - began).toBeGreaterThanOrEqual(290);
    expect(resumed).toEqual(["e-1"]);
  });
});

describe("other ways to a server", () => {
  it("keeps its connections for one call after the other", async () => {
    const server = await start(stubHttp());
    const client = connect({ s: server.config });
    await client.listTools();
    for (let n = 0; n < 20; n++) await client.callTool("s", "t");
    // one or two for the calls, one for listening
    expect(server.opened).toBeLessThanOrEqual(3);
  });

  it("is reached by a unix socket", async () => {
    const socketPath = join(mkdtempSync(join(tmpdir(), "tenon-")), "s");
    await start(stubHttp({ at: socketPath }));
    const client = connect({ s: { url: "http://localhost/mcp", socketPath } });
    expect(await client.listTools()).toHaveLength(1);
  });

  it("is trusted by the certificate that is named, and by no other", async () => {
    const server = await start(
      stubHttp({ server: (handler) => createTlsServer({ key: TEST_KEY, cert: TEST_CERT }, handler) }),
    );
    const url = server.url.replace("http:", "https:");
    expect(await connect({ s: { url, ca: TEST_CERT } }).listTools()).toHaveLength(1);
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
    try {
      const client = connect({ s: { url } });
      const refused = client.callTool("s", "t");
      await expect(refused).rejects.toThrow(/self-signed.*give that of its authority as `ca`/);
      await expect(refused).rejects.not.toThrow(/Check that it is running/);
      await expect(refused).rejects.toMatchObject({ code: "unreachable", maybeExecuted: false });
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
    expect(server.requests.length).toBeGreaterThan(0);
  });
});

describe("a proxy", () => {
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"];
  const before = names.map((name) => [name, process.env[name]] as const);
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    for (const close of closing.splice(0)) close();
  });
  /** A proxy that sends whatever it is asked for to `port`; `refuse` answers 502 instead. */
  async function startProxy(port: number, refuse = false) {
    const asked: string[] = [];
    const proxy = createServer((req: IncomingMessage, res: ServerResponse) => {
      asked.push(req.url ?? "");
      if (refuse) return void res.writeHead(502).end("no way");
      const path = new URL(req.url ?? "").pathname;
      const inner = request(
        { port, host: "127.0.0.1", path, method: req.method ?? "POST", headers: req.headers },
        (answer) => {
          res.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(res);
        },
      );
      req.pipe(inner);
    });
    proxy.on("connect", (req, socket: Socket) => {
      asked.push(`CONNECT ${req.url}`);
      if (refuse) return void socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
      const inner = connectTo(port, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        inner.pipe(socket).pipe(inner);
      });
      inner.on("error", () => socket.destroy());
      socket.on("error", () => inner.destroy());
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    closing.push(() => {
      proxy.close();
      proxy.closeAllConnections();
    });
    return { url: `http://user:word@127.0.0.1:${(proxy.address() as AddressInfo).port}`, asked }; // listening on a port
  }

  it("is used for http and https, and not for this machine", async () => {
    const server = await start(stubHttp());
    const secure = await start(
      stubHttp({ server: (handler) => createTlsServer({ key: TEST_KEY, cert: TEST_CERT }, handler) }),
    );
    const plainProxy = await startProxy(server.port);
    const tunnel = await startProxy(secure.port);
    process.env.HTTP_PROXY = plainProxy.url;
    process.env.HTTPS_PROXY = tunnel.url;
    const client = connect({ far: { url: "http://far.example/mcp" }, near: server.config });
    expect(await client.listTools("far")).toHaveLength(1);
    expect(plainProxy.asked.every((url) => url === "http://far.example/mcp")).toBe(true);
    const count = plainProxy.asked.length;
    expect(await client.listTools("near")).toHaveLength(1);
    expect(plainProxy.asked).toHaveLength(count);
    // through a tunnel, and the certificate is checked inside it
    expect(await connect({ s: { url: "https://far.example/mcp", ca: TEST_CERT } }).listTools()).toHaveLength(1);
    const untrusting = connect({ s: { url: "https://far.example/mcp" } });
    await expect(untrusting.callTool("s", "t")).rejects.toThrow(/self-signed/);
    expect(tunnel.asked[0]).toBe("CONNECT far.example:443");
  });

  it("that answers 502 is named, without its credentials", async () => {
    const proxy = await startProxy(1, true);
    process.env.HTTP_PROXY = process.env.HTTPS_PROXY = proxy.url;
    const shown = proxy.url.replace("user:word@", "");
    for (const url of ["http://far.example/mcp", "https://far.example/mcp"]) {
      const error: unknown = await connect({ s: { url } })
        .callTool("s", "t")
        .catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "unreachable" });
      expect(String(error)).toContain(shown);
      expect(String(error)).toContain("502");
      expect(String(error)).not.toContain("word");
    }
  });

  it.each([
    ["http://a.example/", { HTTP_PROXY: "p:1" }, "http://p:1"],
    ["https://a.example/", { HTTP_PROXY: "p:1" }, undefined],
    ["https://a.example/", { HTTPS_PROXY: "http://x:1", https_proxy: "http://y:1" }, "http://y:1"],
    ["http://a.b.example/", { HTTP_PROXY: "http://p:1", NO_PROXY: "b.example" }, undefined],
    ["http://ab.example/", { HTTP_PROXY: "http://p:1", NO_PROXY: "b.example, .c" }, "http://p:1"],
    ["http://a.c/", { HTTP_PROXY: "http://p:1", NO_PROXY: "b.example, .c" }, undefined],
    ["http://a.c:8080/", { HTTP_PROXY: "http://p:1", NO_PROXY: "a.c:80" }, "http://p:1"],
    ["http://a.c/", { HTTP_PROXY: "http://p:1", NO_PROXY: "*" }, undefined],
  ])("for %s with %o is %s", (url, env, expected) => {
    expect(proxyFor(new URL(url), env)).toBe(expected);
  });
});

describe("a server of the first transport, HTTP+SSE", () => {
  it("is reached after it refused the newer one, with configured and per-call headers", async () => {
    const server = await start(startSse());
    const client = connect({ s: { url: server.url, headers: { "X-Team": "a" } } });
    expect((await client.listTools()).map(({ wireName }) => wireName)).toEqual(["t"]);
    const result = await client.callTool("s", "t", { n: 1 }, { headers: { "X-Call": "1" } });
    expect(renderText(result.content)).toBe('{"n":1}');
    await client.callTool("s", "t");
    expect(client.servers()).toMatchObject([{ health: "up", era: "legacy" }]);
    expect(server.streams).toBe(1);
    const calls = server.requests.filter(({ method }) => method === "tools/call").map(({ headers }) => headers);
    expect(calls.map((headers) => [headers["x-team"], headers["x-call"]])).toEqual([
      ["a", "1"],
      ["a", undefined],
    ]);
  });

  it("whose stream is cut fails the call at once, and works again", async () => {
    const server = await start(startSse({ onCall: (call) => (call.nth === 1 ? undefined : { content: [] }) }));
    const client = connect({ s: { url: server.url } });
    await client.listTools();
    const call = client.callTool("s", "t");
    const lost = expect(call).rejects.toMatchObject({ code: "lost", maybeExecuted: true });
    await expect.poll(() => server.requests.some(({ method }) => method === "tools/call")).toBe(true);
    server.cut();
    await lost;
    expect(await client.callTool("s", "t")).toMatchObject({ content: [] });
  });

  it("is not looked for behind an address that is plainly wrong", async () => {
    const server = await start(
      stubHttp({
        onHttp: (_, res) => {
          res.writeHead(404).end("nothing here");
          return true;
        },
      }),
    );
    const client = connect({ s: server.config });
    await expect(client.callTool("s", "t")).rejects.toThrow(/HTTP 404: nothing here/);
  });
});
