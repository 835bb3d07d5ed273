import { connect as connectSocket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { TenonServer } from "../src/index.ts";
import { type Answer, legacy, modern, overFetch, overSocket, type Raw } from "./raw-requests.ts";
import { shop } from "./servers.ts";

let server: TenonServer;
let url: string;
beforeAll(async () => {
  server = shop({ http: { requestTimeoutMs: 400 } });
  server.tool("any", { input: z.object({ value: z.unknown() }) }, ({ value }) => JSON.stringify(value).length);
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());

const paths = [
  ["fetch", (raw: Raw) => overFetch(server, raw)],
  ["listen", (raw: Raw) => overSocket(url, raw)],
] as const;

const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const withValue = (raw: Raw, json: string): Raw => ({ ...raw, body: String(raw.body).replace('"VALUE"', () => json) });
const anyCall = (send: typeof legacy): Raw => send("tools/call", { name: "any", arguments: { value: "VALUE" } });

describe.each(paths)("over %s", (_path, send) => {
  it.each([
    ["modern", modern],
    ["legacy", legacy],
  ] as const)("%s requests of unusual size are answered or refused, never with a 500", async (_era, make) => {
    const base = anyCall(make);
    const text = async (json: string): Promise<Answer> => send(withValue(base, json));
    expect(await text(nested(90))).toMatchObject({
      status: 200,
      messages: [{ result: { content: [{ text: "180" }] } }],
    });
    expect(await text(nested(150))).toMatchObject({
      status: 200,
      messages: [{ result: { isError: true, content: [{ text: expect.stringContaining("deeper than 100 levels") }] } }],
    });
    expect(await text(JSON.stringify(Array.from({ length: 10_000 }, (_, i) => i)))).toMatchObject({ status: 200 });
    expect(await text(nested(100_000))).toMatchObject({ status: 400, messages: [{ error: { code: -32700 } }] });
    expect(await text(`"${"[".repeat(1_000)}\\""`)).toMatchObject({ status: 200 });
    const large = await send({ ...base, headers: { ...base.headers }, body: Buffer.alloc(5 * 1024 * 1024, 0x20) });
    expect(large).toMatchObject({ status: 413, messages: [{ error: { code: -32000 } }] });
    expect(await text('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')).toMatchObject({
      status: 200,
    });
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
  it("a body that is no JSON, or no UTF-8, or has a byte order mark is refused in kind", async () => {
    for (const body of ["{", "", "undefined", Buffer.from([0xff, 0xfe, 0x00]), "\uFEFF{}"]) {
      const { status } = await send({ ...modern("tools/list"), body });
      expect(status).toBe(400);
    }
  });
});

describe("over a socket", () => {
  const raw = (lines: string, wait: number): Promise<string> =>
    new Promise((resolve) => {
      const socket = connectSocket(Number(new URL(url).port), "127.0.0.1");
      let text = "";
      socket.on("data", (part) => {
        text += part;
      });
      socket.on("close", () => resolve(text));
      socket.on("error", () => resolve(text));
      socket.write(lines);
      setTimeout(() => socket.destroy(), wait).unref();
    });
  it("a body without a length is cut at the limit", async () => {
    const chunk = `${(65_536).toString(16)}\r\n${" ".repeat(65_536)}\r\n`;
    const head =
      "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    expect(await raw(head + chunk.repeat(80), 5_000)).toMatch(/^HTTP\/1.1 413/);
  });
  it("a client that sends its headers or its body drop by drop is cut off", async () => {
    const begin = Date.now();
    const [headers, body] = await Promise.all([
      raw("POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n", 10_000),
      raw(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
        10_000,
      ),
    ]);
    expect(headers).toMatch(/^HTTP\/1.1 408/);
    expect(body).toMatch(/^HTTP\/1.1 408/);
    expect(Date.now() - begin).toBeLessThan(5_000);
  });
  it("a thousand sessions nobody uses leave room for one more", async () => {
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } };
    const open = async (): Promise<string> =>
      (await overSocket(url, legacy("initialize", params))).headers["mcp-session-id"] ?? "";
    const ping = async (id: string): Promise<number> =>
      (await overSocket(url, legacy("ping", {}, { headers: { "mcp-session-id": id } }))).status;
    const first = await open();
    for (let i = 0; i < 20; i++) await Promise.all(Array.from({ length: 50 }, open));
    const last = await open();
    expect([await ping(first), await ping(last)]).toEqual([404, 200]);
  }, 120_000);
});
