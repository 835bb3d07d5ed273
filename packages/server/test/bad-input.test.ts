import { connect as connectSocket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { LogEntry, TenonServer } from "../src/index.ts";
import {
  type Answer,
  initialize,
  legacy,
  META,
  modern,
  overFetch,
  overSocket,
  type Raw,
  sessionOf,
} from "./raw-requests.ts";
import { effects, shop } from "./servers.ts";

let server: TenonServer;
let url: string;
const logged: LogEntry[] = [];
beforeAll(async () => {
  server = shop({ http: { requestTimeoutMs: 400 }, logSink: (entry) => logged.push(entry) });
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
    // the arguments themselves are the first level
    expect(await text(nested(99))).toMatchObject({
      status: 200,
      messages: [{ result: { content: [{ text: "198" }] } }],
    });
    for (const levels of [100, 150]) {
      const said = expect.stringContaining("deeper than 100 levels");
      expect(await text(nested(levels))).toMatchObject({
        status: 200,
        messages: [{ result: { isError: true, content: [{ text: said }] } }],
      });
    }
    const elements = (length: number): string => JSON.stringify(Array.from({ length }, () => 0));
    expect(await text(elements(10_000))).toMatchObject({
      status: 200,
      messages: [{ result: { content: [{ text: "20001" }] } }],
    });
    expect(await text(elements(10_001))).toMatchObject({
      status: 200,
      messages: [{ result: { isError: true, content: [{ text: expect.stringContaining("10001 elements") }] } }],
    });
    expect(await text(nested(100_000))).toMatchObject({ status: 400, messages: [{ error: { code: -32700 } }] });
    expect(await text(`"${"[".repeat(1_000)}\\""`)).toMatchObject({ status: 200 });
    const large = await send({ ...base, headers: { ...base.headers }, body: Buffer.alloc(5 * 1024 * 1024, 0x20) });
    expect(large).toMatchObject({ status: 413, messages: [{ error: { code: -32000 } }] });
    expect(await text('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')).toMatchObject({
      status: 200,
    });
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
  it("a body in an encoding nobody decodes is refused by its name", async () => {
    const { status, messages } = await send(modern("tools/list", {}, { headers: { "content-encoding": "gzip" } }));
    expect([status, messages]).toMatchObject([415, [{ error: { message: "Content-Encoding gzip is not supported" } }]]);
  });
  it("a body that is no JSON, or no UTF-8, or has a byte order mark is refused in kind", async () => {
    for (const body of ["{", "", "undefined", Buffer.from([0xff, 0xfe, 0x00]), "\uFEFF{}"]) {
      const { status } = await send({ ...modern("tools/list"), body });
      expect(status).toBe(400);
    }
  });
});

const asks = { meta: { [META.capabilities]: { elicitation: { form: {} } } } };
const buy = { name: "buy", arguments: { item: "tea" } };
const retry = (requestState: unknown, more: object = {}): Raw =>
  modern("tools/call", { ...buy, requestState, ...more }, asks);

describe.each(paths)("over %s", (_path, send) => {
  it.each<[string, Raw, number, number | undefined]>([
    [
      "a content type that is not JSON",
      { ...modern("tools/list"), headers: { "content-type": "text/plain" } },
      415,
      -32000,
    ],
    ["no content type", { ...modern("tools/list"), headers: {} }, 415, -32000],
    ["an accept of nothing we have", modern("tools/list", {}, { headers: { accept: "text/html" } }), 200, undefined],
    ["an accept of nothing we have", legacy("tools/list", {}, { headers: { accept: "text/html" } }), 406, -32000],
    ["no method header", modern("tools/list", {}, { headers: { "mcp-method": "" } }), 400, -32020],
    ["another method in the header", modern("tools/list", {}, { headers: { "mcp-method": "ping" } }), 400, -32020],
    ["another name in the header", modern("tools/call", buy, { headers: { "mcp-name": "add" } }), 400, -32020],
    [
      "another revision in the header",
      modern("tools/list", {}, { headers: { "mcp-protocol-version": "2025-11-25" } }),
      400,
      -32020,
    ],
    [
      "a revision nobody has",
      modern(
        "tools/list",
        {},
        { headers: { "mcp-protocol-version": "2099-01-01" }, meta: { [META.version]: "2099-01-01" } },
      ),
      400,
      -32022,
    ],
    ["an unknown method", modern("tools/nope"), 404, -32601],
    ["an unknown method", legacy("tools/nope"), 200, -32601],
    ["a method of prototypes", modern("constructor"), 404, -32601],
    ["a message of nothing", { ...modern("tools/list"), body: "{}" }, 400, -32600],
  ])("%s is refused in kind (%#)", async (_what, raw, status, code) => {
    const answer = await send(raw);
    const [message] = answer.messages as [{ error?: { code: number } }];
    expect([answer.status, message.error?.code]).toEqual([status, code]);
  });

  it("an accept that lacks one of the two is told which it was, and makes no noise in the log", async () => {
    const { headers, ...raw } = legacy("tools/list");
    const said = async (accept: string): Promise<unknown> => {
      const { status, messages } = await send({ ...raw, headers: { ...headers, accept } });
      return [status, (messages as [{ error: { message: string } }])[0].error.message];
    };
    logged.length = 0;
    const both = "Accept must name both application/json and text/event-stream";
    expect(await said("*/*")).toEqual([406, `${both}; it was "*/*"`]);
    expect(await said("application/json")).toEqual([406, `${both}; it was "application/json"`]);
    expect(logged.filter(({ level }) => level !== "debug")).toEqual([]);
  });

  it("a state that is forged, cut, changed or of another call is refused with its reason, and does nothing", async () => {
    const [asked] = (await send(modern("tools/call", buy, asks))).messages as [{ result: { requestState: string } }];
    const state = asked.result.requestState;
    const done = effects.length;
    const other = Buffer.from(JSON.stringify({ alg: "none", kid: "x" })).toString("base64url");
    for (const [reason, raw] of [
      ["tampered", retry("forged")],
      ["tampered", retry("")],
      ["tampered", retry(state.slice(0, -4))],
      ["tampered", retry(`${state}A`)],
      ["tampered", retry(state.replace(/^[^.]+/, other))],
      ["tampered", retry("a.".repeat(100_000))],
      ["foreign", retry(state, { arguments: { item: "gold" } })],
      ["foreign", retry(state, { name: "two", arguments: {} })],
    ] as const) {
      const answer = (await send(raw)).messages.at(-1);
      expect(answer).toMatchObject({ error: { code: -32602, data: { reason } } });
    }
    expect(effects.length).toBe(done);
  });
  it("a state that is brought again gets the same outcome, with other answers a refusal, and acts once", async () => {
    const answers = (asked: unknown, value: unknown): object => {
      const { result } = asked as { result: { requestState: string; inputRequests: object } };
      const [key = ""] = Object.keys(result.inputRequests);
      return retry(result.requestState, { inputResponses: { [key]: { action: "accept", content: { value } } } });
    };
    const ask = async (raw: object): Promise<unknown> => (await send(raw)).messages.at(-1);
    const many = await ask(answers(await ask(modern("tools/call", buy, asks)), "yes"));
    const before = effects.filter((effect) => effect.startsWith("charge")).length;
    const first = await ask(answers(many, 2));
    expect(first).toMatchObject({ result: { structuredContent: { many: 2 } } });
    expect(await ask(answers(many, 2))).toMatchObject({
      result: { structuredContent: { many: 2 }, _meta: { "dev.tenon/replayed": true } },
    });
    expect(await ask(answers(many, 3))).toMatchObject({ error: { code: -32602, data: { reason: "answered" } } });
    expect(effects.filter((effect) => effect.startsWith("charge")).length).toBe(before + 1);
  });

  it("a thousand sessions nobody uses leave room for one more", async () => {
    const open = async (): Promise<Record<string, string>> => sessionOf(await send(initialize()));
    const ping = async (headers: Record<string, string>): Promise<number> =>
      (await send(legacy("ping", {}, { headers }))).status;
    const first = await open();
    for (let i = 0; i < 20; i++) await Promise.all(Array.from({ length: 50 }, open));
    const last = await open();
    expect([await ping(first), await ping(last)]).toEqual([404, 200]);
  }, 120_000);
});

describe("over fetch, where the embedding program reads the socket", () => {
  const { headers = {} } = modern("tools/list");
  const request = (body: ReadableStream<Uint8Array>, signal?: AbortSignal): Request =>
    new Request("http://127.0.0.1/mcp", {
      method: "POST",
      headers: { host: "127.0.0.1", ...headers },
      body,
      ...(signal && { signal }),
      duplex: "half", // what Node asks for where a body is a stream; its types do not know
    } as RequestInit);
  it("a body without a length is cut at the limit", async () => {
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 65_536;
        controller.enqueue(new Uint8Array(65_536).fill(0x20));
      },
    });
    expect((await server.fetch(request(endless))).status).toBe(413);
    expect(sent).toBeLessThan(6 * 1024 * 1024);
  });
  it("a body that stops in the middle is given up when its caller leaves, or after the time a request may take", async () => {
    const cancelled: string[] = [];
    const stopped = (name: string): ReadableStream<Uint8Array> =>
      new ReadableStream({
        start: (controller) => controller.enqueue(new Uint8Array([0x7b])),
        cancel: () => void cancelled.push(name),
      });
    const left = new AbortController();
    const leaving = server.fetch(request(stopped("left"), left.signal));
    const slow = server.fetch(request(stopped("slow")));
    expect((await overFetch(server, modern("tools/list"))).status).toBe(200);
    left.abort();
    expect([(await leaving).status, (await slow).status]).toEqual([499, 408]);
    expect(cancelled).toEqual(["left", "slow"]);
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
});
