import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { behindProxies, publicUrlOf, withPublicTarget } from "./forwarding.ts";
import { remoteAddressOf } from "./remote-address.ts";
import { compileTrustedProxies } from "./trusted-proxies.ts";

/** What a listener behind trusted proxies sees of a request. */
interface Seen {
  status: number;
  address?: string | null;
  host?: string;
  target?: string;
  text: string;
}

const trusted = compileTrustedProxies(["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"]);
const server = createServer(
  behindProxies(
    trusted,
    false,
    withPublicTarget((request: IncomingMessage, response) => {
      // every way to a header has to agree
      const hosts = [request.headers.host, ...(request.headersDistinct.host ?? [])];
      const raw = request.rawHeaders.filter((_, at) => request.rawHeaders[at - 1]?.toLowerCase() === "host" && at % 2);
      response.end(
        JSON.stringify({
          address: remoteAddressOf(request) ?? null,
          host: [...new Set([...hosts, ...raw])].join(" | "),
          target: request.url,
        }),
      );
    }),
  ),
);
let port: number;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => void server.close());

function send(headers: Record<string, string | string[]>): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      { port, host: "127.0.0.1", path: "/mcp?a=1", headers: { host: "inner", ...headers } },
      (got) => {
        let text = "";
        got.on("data", (part) => {
          text += part;
        });
        got.on("end", () => {
          const status = got.statusCode ?? 0;
          resolve({ status, text, ...(status === 200 && JSON.parse(text)) });
        });
      },
    );
    sent.on("error", reject).end();
  });
}

describe("a request through a trusted proxy", () => {
  it.each<[string, Record<string, string | string[]>, string]>([
    ["nothing said", {}, "127.0.0.1"],
    ["one hop", { "x-forwarded-for": "203.0.113.9" }, "203.0.113.9"],
    ["with a port", { "x-forwarded-for": "203.0.113.9:4711" }, "203.0.113.9"],
    ["IPv6", { "x-forwarded-for": "2001:DB9::9" }, "2001:db9::9"],
    ["IPv6 with a port", { "x-forwarded-for": "[2001:db9::9]:4711" }, "2001:db9::9"],
    ["past trusted hops", { "x-forwarded-for": "203.0.113.9, 10.0.0.1, 2001:db8::1" }, "203.0.113.9"],
    ["what the caller wrote itself is further out", { "x-forwarded-for": "1.1.1.1, 203.0.113.9" }, "203.0.113.9"],
    ["also as a header of its own", { "x-forwarded-for": ["1.1.1.1", "203.0.113.9, 10.0.0.1"] }, "203.0.113.9"],
    ["only trusted hops", { "x-forwarded-for": "10.0.0.2, 10.0.0.1" }, "10.0.0.2"],
    ["no address", { "x-forwarded-for": "unknown" }, "127.0.0.1"],
    ["no address behind one", { "x-forwarded-for": "1.1.1.1, unknown, 10.0.0.1" }, "10.0.0.1"],
    ["more hops than are looked at", { "x-forwarded-for": `1.1.1.1${", 10.0.0.1".repeat(40)}` }, "10.0.0.1"],
    ["the standard header", { forwarded: "for=203.0.113.9" }, "203.0.113.9"],
    ["its hops", { forwarded: 'for=1.1.1.1, For="[2001:db9::9]:80";by=_x , for=10.0.0.1' }, "2001:db9::9"],
    ["its hidden hop", { forwarded: "for=_secret" }, "127.0.0.1"],
    [
      "both headers, when they agree",
      { "x-forwarded-for": "203.0.113.9", forwarded: "for=203.0.113.9" },
      "203.0.113.9",
    ],
  ])("comes from the first hop that is not trusted: %s", async (_, headers, address) => {
    expect(await send(headers)).toMatchObject({ status: 200, address, host: "inner", target: "/mcp?a=1" });
  });

  it.each<[string, Record<string, string | string[]>, string, string]>([
    ["host", { "x-forwarded-host": "tools.example" }, "tools.example", "/mcp?a=1"],
    ["host and port", { "x-forwarded-host": "tools.example:8443" }, "tools.example:8443", "/mcp?a=1"],
    ["the last of several hosts", { "x-forwarded-host": ["a.example", "b.example"] }, "b.example", "/mcp?a=1"],
    ["protocol", { "x-forwarded-proto": "https" }, "inner", "https://inner/mcp?a=1"],
    [
      "both",
      { "x-forwarded-host": "[2001:db9::9]", "x-forwarded-proto": "HTTPS" },
      "[2001:db9::9]",
      "https://[2001:db9::9]/mcp?a=1",
    ],
    [
      "those of the proxy that names the caller",
      {
        forwarded: 'for=203.0.113.9;host="tools.example:8443";proto=https, for=10.0.0.1;host=inner.example;proto=http',
      },
      "tools.example:8443",
      "https://tools.example:8443/mcp?a=1",
    ],
    [
      "those of the nearest proxy, when it hides the caller",
      { forwarded: "host=a.example, for=_x;host=b.example" },
      "b.example",
      "/mcp?a=1",
    ],
  ])("was sent to the host and protocol that the proxy says: %s", async (_, headers, host, target) => {
    expect(await send(headers)).toMatchObject({ status: 200, host, target });
  });

  it.each<[string, Record<string, string>, string]>([
    ["a host with a path", { "x-forwarded-host": "tools.example/x" }, "host"],
    ["a host with a name", { "x-forwarded-host": "me@tools.example" }, "host"],
    ["an empty host", { "x-forwarded-host": "tools.example," }, "host"],
    ["a very long host", { "x-forwarded-host": "a".repeat(300) }, "host"],
    ["another protocol", { "x-forwarded-proto": "ftp" }, "protocol"],
    ["no such form", { forwarded: "203.0.113.9" }, "RFC 7239"],
    ["an open quote", { forwarded: 'for="203.0.113.9' }, "RFC 7239"],
    ["the same twice", { forwarded: "for=203.0.113.9;for=1.1.1.1" }, "RFC 7239"],
    ["two kinds that name two callers", { "x-forwarded-for": "203.0.113.9", forwarded: "for=1.1.1.1" }, "disagree"],
    [
      "a caller's own kind that adds a host",
      { "x-forwarded-for": "203.0.113.9", forwarded: "for=203.0.113.9;host=a.example" },
      "disagree",
    ],
    ["a caller's own kind beside a protocol", { "x-forwarded-proto": "http", forwarded: "for=1.1.1.1" }, "disagree"],
  ])("is refused when it cannot be told how it came: %s", async (_, headers, why) => {
    const { status, text } = await send(headers);
    expect(status).toBe(400);
    expect(JSON.parse(text).error.message).toContain(why);
  });
});

describe("the public address of a request", () => {
  it.each([
    ["http://127.0.0.1:8000/mcp?a=1", "127.0.0.1:8000", "http://127.0.0.1:8000/mcp?a=1"],
    ["https://tools.example/mcp", "tools.example", "https://tools.example/mcp"],
    // whoever names another host in the target is told the one that was checked
    ["http://evil.example/mcp", "localhost:8000", "http://localhost:8000/mcp"],
    ["http://127.0.0.1/mcp", undefined, "http://127.0.0.1/mcp"],
  ])("%s with Host %s is %s", (url, host, expected) => {
    expect(publicUrlOf(new Request(url, { headers: host === undefined ? {} : { host } })).href).toBe(expected);
  });
});
