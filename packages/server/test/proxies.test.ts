// Behind reverse proxies: whose word about the caller counts, on every way a request can take through the server.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { publicUrlOf } from "../src/http/forwarding.ts";
import type { HttpSide } from "../src/http/http.ts";
import { listen } from "../src/http/listen.ts";
import { createServer, type HttpOptions, type ServerRequest, type TenonServer } from "../src/index.ts";
import { rateLimit } from "../src/middleware/index.ts";
import { call, said } from "./ask.ts";
import { type Answer, initialize, legacy, modern, overSocket, type Raw, sessionOf } from "./raw-requests.ts";

const open: Pick<TenonServer, "close">[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

const NOBODY = ["192.0.2.1"];

/** A server with a tool that tells what it sees of its caller. */
function make(http: HttpOptions): TenonServer {
  const server = createServer({ name: "proxied", version: "1.0.0", logSink: () => undefined, http });
  server.tool("where", {}, (_, ctx) => ({ address: ctx.remoteAddress, host: ctx.headers?.get("host") }));
  open.push(server);
  return server;
}

async function start(http: HttpOptions): Promise<string> {
  return (await make(http).listen({ port: 0 })).url;
}

const where = { name: "where", arguments: {} };
const seen = ({ messages }: Answer): unknown =>
  JSON.parse((messages.at(-1) as { result: { content: [{ text: string }] } }).result.content[0].text);

/** The ways through a server: straight from the dispatcher, and through the protocol layer with and without a session. */
const ways: Record<string, (url: string, headers: Record<string, string>) => Promise<Answer>> = {
  "2026-07-28, straight": (url, headers) => overSocket(url, modern("tools/call", where, { headers })),
  "2026-07-28, through the protocol layer": (url, headers) =>
    // a parameter that is no part of the revision is left to the protocol layer
    overSocket(url, modern("tools/call", { ...where, more: 1 }, { headers })),
  "2025-11-25, straight": (url, headers) => overSocket(url, legacy("tools/call", where, { headers })),
  "2025-11-25, in a session": async (url, headers) => {
    const opened = await overSocket(url, withHeaders(initialize(), headers));
    if (opened.status !== 200) return opened;
    return overSocket(url, legacy("tools/call", where, { headers: { ...headers, ...sessionOf(opened) } }));
  },
};
const withHeaders = (raw: Raw, headers: Record<string, string>): Raw => ({
  ...raw,
  headers: { ...raw.headers, ...headers },
});

describe.each(Object.entries(ways))("a request of %s", (_, send) => {
  const http = { allowedHosts: ["tools.example"], trustedProxies: ["loopback"] };
  const forwarded = {
    host: "inner:8000",
    "x-forwarded-for": "1.1.1.1, 203.0.113.9",
    "x-forwarded-host": "tools.example",
    "x-forwarded-proto": "https",
  };

  it("has the address and the host that a trusted proxy passes on", async () => {
    const answer = await send(await start(http), forwarded);
    expect(seen(answer)).toEqual({ address: "203.0.113.9", host: "tools.example" });
  });
  it("has its own address and host without a proxy", async () => {
    const answer = await send(await start({ ...http, trustedProxies: [] }), { host: "tools.example" });
    expect(seen(answer)).toEqual({ address: "127.0.0.1", host: "tools.example" });
  });
  it.each([undefined, NOBODY])(
    "has nothing that a peer says who is not trusted (trusted: %s)",
    async (trustedProxies) => {
      const url = await start({
        allowedHosts: ["tools.example", "other.example"],
        ...(trustedProxies && { trustedProxies }),
      });
      const answer = await send(url, { ...forwarded, forwarded: "for=2.2.2.2", host: "other.example" });
      expect(seen(answer)).toEqual({ address: "127.0.0.1", host: "other.example" });
    },
  );
  it("is refused for its own host, whatever an untrusted peer says instead", async () => {
    const url = await start({ trustedProxies: NOBODY });
    expect(await send(url, { host: "evil.example", "x-forwarded-host": "localhost" })).toMatchObject({
      status: 403,
      messages: [{ error: { message: "Invalid Host: evil.example" } }],
    });
  });
  it("is refused for a host that a trusted proxy was asked for under (DNS rebinding)", async () => {
    const url = await start(http);
    const rebound = { ...forwarded, host: "tools.example", "x-forwarded-host": "evil.example" };
    expect(await send(url, rebound)).toMatchObject({
      status: 403,
      messages: [{ error: { message: "Invalid Host: evil.example" } }],
    });
    expect(await send(url, { host: "evil.example" })).toMatchObject({ status: 403 });
  });
  it("is refused as a page's that only claims an allowed host, where the browser's machine is trusted", async () => {
    const url = await start({ trustedProxies: ["loopback"] });
    const page = { host: "evil.example", origin: "http://evil.example", "x-forwarded-host": "localhost" };
    expect(await send(url, page)).toMatchObject({
      status: 403,
      messages: [{ error: { message: "Invalid Origin: evil.example" } }],
    });
  });
  it("is refused when what the proxy says makes no sense", async () => {
    const answer = await send(await start(http), { ...forwarded, "x-forwarded-host": "a b" });
    expect(answer).toMatchObject({ status: 400, messages: [{ error: { message: expect.stringContaining("host") } }] });
  });
});

describe("where a request came from", () => {
  it("tells callers without a token apart for a rate limit", async () => {
    const server = make({ trustedProxies: ["loopback"] });
    const per = ({ caller, remoteAddress }: ServerRequest): string => caller?.subject ?? remoteAddress ?? "";
    server.use(rateLimit({ limit: 1, windowMs: 60_000, per }));
    const { url } = await server.listen({ port: 0 });
    const from = async (address: string): Promise<string> =>
      JSON.stringify(
        (await overSocket(url, modern("tools/call", where, { headers: { "x-forwarded-for": address } }))).messages,
      );
    expect(await from("203.0.113.1")).not.toContain("rate_limited");
    expect(await from("203.0.113.2")).not.toContain("rate_limited");
    expect(await from("203.0.113.1")).toContain("rate_limited");
    expect(await from("9.9.9.9, 203.0.113.1")).toContain("rate_limited"); // the caller wrote the first one
  });
  it("is what the embedding program says, over fetch", async () => {
    const server = make({ trustedProxies: ["loopback"] });
    const request = modern("tools/call", where, { headers: { host: "127.0.0.1", "x-forwarded-for": "1.1.1.1" } });
    const sent = (): Request =>
      new Request("http://127.0.0.1/mcp", { method: "POST", headers: request.headers ?? {}, body: request.body ?? "" });
    const text = async (response: Response): Promise<string> => response.text();
    expect(await text(await server.fetch(sent(), { remoteAddress: "203.0.113.5" }))).toContain("203.0.113.5");
    expect(await text(await server.fetch(sent()))).not.toContain("1.1.1.1");
    expect(said(await call(server, "where"))).toBe('{"host":"127.0.0.1"}');
  });
  it.each<[string[], object]>([
    [["unix"], { address: "203.0.113.9", host: "tools.example" }],
    [["loopback"], { host: "localhost" }],
  ])("over a unix socket is what the proxy there says, if %s is trusted", async (trustedProxies, expected) => {
    const folder = mkdtempSync(join(tmpdir(), "tenon-"));
    const unixSocket = join(folder, "s");
    const server = make({ allowedHosts: ["tools.example", "localhost"], trustedProxies });
    await server.listen({ unixSocket });
    const headers = { host: "localhost", "x-forwarded-host": "tools.example", "x-forwarded-for": "203.0.113.9" };
    for (const raw of [
      modern("tools/call", where, { headers }),
      modern("tools/call", { ...where, x: 1 }, { headers }),
    ]) {
      expect(seen(await overSocket({ socketPath: unixSocket, path: "/mcp" }, raw))).toEqual(expected);
    }
    rmSync(folder, { recursive: true });
  });
});

describe("the address a caller used", () => {
  it.each([
    ["tools.example", {}, "http://tools.example/mcp?a=1"],
    ["inner", { "x-forwarded-host": "tools.example", "x-forwarded-proto": "https" }, "https://tools.example/mcp?a=1"],
    ["tools.example:8443", { "x-forwarded-proto": "https" }, "https://tools.example:8443/mcp?a=1"],
    ["inner", { forwarded: "for=1.2.3.4;host=tools.example;proto=https" }, "https://tools.example/mcp?a=1"],
  ])("is known to the HTTP side: Host %s and %j", async (host, headers, expected) => {
    const side = {
      fetch: async (request: Request) => Response.json([request.url, publicUrlOf(request).href]),
      serves: () => true,
    } as Pick<HttpSide, "fetch" | "serves"> as HttpSide; // nothing else of it is used
    const listening = await listen(
      side,
      { port: 0, trustedProxies: ["loopback"] },
      (_, otherwise) => otherwise,
      () => undefined,
    );
    const answer = await overSocket(`${listening.url}?a=1`, { headers: { host, ...headers }, body: "{}" });
    expect(answer.messages).toEqual([[expected, expected]]);
    await listening.close();
  });
});

describe("a list of trusted proxies", () => {
  it("with a mistake keeps the server from listening, and says which entry", async () => {
    await expect(start({ trustedProxies: ["10.0.0.0/8", "loopbak"] })).rejects.toMatchObject({
      code: "trusted_proxies",
      message: 'http.trustedProxies: "loopbak" is no address; did you mean "loopback"?',
    });
  });
  it("under another name is refused", () => {
    expect(() => make({ trustProxies: ["loopback"] } as HttpOptions)).toThrow('did you mean "trustedProxies"?');
  });
});
