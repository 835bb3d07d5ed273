import { connect as connectSocket } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { TenonServer } from "../src/index.ts";
import { type Answer, envelope, legacy, META, modern, overFetch, overSocket, type Raw } from "./raw-requests.ts";
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

describe("whatever arrives", () => {
  const runs = Number(process.env.TENON_FUZZ_RUNS ?? 150);
  const method = fc.oneof(
    fc.constantFrom(
      "tools/call",
      "tools/list",
      "prompts/get",
      "prompts/list",
      "resources/read",
      "resources/list",
      "ping",
    ),
    fc.constantFrom(
      "server/discover",
      "completion/complete",
      "initialize",
      "logging/setLevel",
      "__proto__",
      "constructor",
    ),
    fc.string({ maxLength: 12 }),
  );
  const name = fc.oneof(
    fc.constantFrom("add", "order", "count", "both", "any", "__proto__"),
    fc.string({ maxLength: 8 }),
  );
  const json = fc.jsonValue({ maxDepth: 4 });
  const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
    fc.option(arbitrary, { nil: undefined });
  const meta = fc.oneof(
    { weight: 3, arbitrary: fc.constant(envelope()) },
    fc.record({
      [META.version]: fc.oneof(fc.constantFrom("2026-07-28", "2025-11-25", "2099-01-01"), json),
      [META.capabilities]: fc.oneof(fc.constant({}), json),
      [META.info]: maybe(fc.oneof(fc.constant({ name: "n", version: "1" }), json)),
      [META.level]: maybe(fc.oneof(fc.constantFrom("info", "error"), json)),
      progressToken: maybe(json),
      traceparent: maybe(json),
    }),
    json,
  );
  const params = fc.oneof(
    fc.record({ name, arguments: maybe(json), uri: maybe(name), cursor: maybe(json), _meta: maybe(meta) }),
    fc.record({ requestState: json, inputResponses: json, name, _meta: maybe(meta) }),
    json,
  );
  const message = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        jsonrpc: fc.constantFrom("2.0", "2.0", "2.0", "1.0"),
        id: maybe(fc.oneof(fc.integer(), fc.string(), json)),
        method,
        params: maybe(params),
      }),
    },
    fc.array(fc.record({ jsonrpc: fc.constant("2.0"), id: fc.integer(), method }), { maxLength: 3 }),
    json,
  );
  const headers = fc.record({
    "content-type": fc.constantFrom(
      "application/json",
      "application/json",
      "application/json; charset=utf-8",
      "text/plain",
      "application/json-x",
    ),
    accept: fc.constantFrom("application/json, text/event-stream", "application/json, text/event-stream", "*/*"),
    "mcp-protocol-version": maybe(fc.constantFrom("2026-07-28", "2025-11-25", "x")),
    "mcp-method": maybe(fc.constantFrom("tools/call", "tools/list", "x")),
    "mcp-name": maybe(fc.constantFrom("add", "=?base64?YWRk?=", "=?base64?!?=")),
    origin: maybe(fc.constantFrom("http://localhost:1", "null", "http://x.example")),
  });

  /** Sets the headers that repeat the body as a client would, in most cases: else everything stops at the headers. */
  const agreeing = (body: unknown, given: Record<string, string | undefined>): Record<string, string | undefined> => {
    const one = body as { method?: unknown; params?: { name?: unknown; uri?: unknown } | null } | null;
    const called = one?.params?.name ?? one?.params?.uri;
    const safe = (value: unknown): value is string => typeof value === "string" && /^[\x21-\x7e]+$/.test(value);
    return {
      ...given,
      ...(safe(one?.method) && { "mcp-method": one?.method }),
      ...(safe(called) && { "mcp-name": called }),
    };
  };

  it(`gets an answer of the revision, the same on both paths (${runs} cases)`, async () => {
    await fc.assert(
      fc.asyncProperty(message, headers, fc.integer({ min: 0, max: 3 }), async (body, given, luck) => {
        const chosen = luck > 0 ? agreeing(body, given) : given;
        const raw: Raw = {
          headers: Object.fromEntries(
            Object.entries(chosen).filter((entry): entry is [string, string] => entry[1] !== undefined),
          ),
          body: JSON.stringify(body) ?? "",
        };
        const answers = [await overFetch(server, raw), await overSocket(url, raw)] as const;
        for (const { status, text } of answers) {
          expect([200, 202, 400, 403, 404, 405, 406, 413, 415]).toContain(status);
          expect(text).not.toMatch(/\n\s+at |node_modules|\/src\//);
        }
        const [one, other] = answers.map(({ status, messages }) => ({
          status,
          kinds: messages.map((sent) => {
            const { result, error, id } = sent as { result?: object; error?: { code: number }; id?: unknown };
            return { id, result: result && Object.keys(result).sort(), code: error?.code };
          }),
        }));
        expect(other).toEqual(one);
      }),
      { numRuns: runs },
    );
  }, 120_000);
});
