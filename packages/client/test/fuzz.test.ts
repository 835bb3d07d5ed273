// Whatever a server says, a call ends within its limit, at once where the answer was cut; no result is larger than allowed, the
// other servers do not notice, and nothing is left behind.
// TENON_FUZZ_RUNS sets the number of runs per property.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IdScanner, LineBuffer } from "../src/connection/lines.ts";
import { type Client, createClient } from "../src/index.ts";
import { type HttpStub, type StdioStub, type StubReply, type StubRequest, stubHttp, stubStdio } from "./stub/index.ts";

const RUNS = Number(process.env.TENON_FUZZ_RUNS ?? 25);
const CALL_MS = 400;
const CONNECT_MS = 1_000;
/** Far above what a call may take: one whose answer was cut must not need its limit. */
const NOT_NEEDED_MS = 20_000;
/** Bytes one message may have. */
const LIMIT = 100_000;
/** A call may open a connection twice and wait once; the rest is for a loaded machine. */
const SETTLED_MS = 2 * CONNECT_MS + CALL_MS + 3_000;
const TIMEOUT_MS = 60_000 + RUNS * 2_000;

const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown) => void unhandled.push(reason);
beforeAll(() => void process.on("unhandledRejection", onUnhandled));
afterAll(() => void process.off("unhandledRejection", onUnhandled));

/** What is put where an answer should be; `ID` stands for the request's id. */
const piece = fc.oneof(
  fc.constantFrom(
    '{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}\n',
    '{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[{"type":"text"}]}}\n',
    '{"jsonrpc":"2.0","id":ID,"result":null}\n',
    '{"jsonrpc":"2.0","id":ID,"error":{"code":"x","message":1}}\n',
    '{"jsonrpc":"2.0","id":ID}\n',
    '{"jsonrpc":"2.0","id":"ID","result":{}}\n',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":"many"}}\n',
    '{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}\n',
    '{"jsonrpc":"2.0","id":2,"method":"ping"}\n',
    '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID}}\n',
    "data: {}\n\n",
    'event: message\ndata: {"jsonrpc":"2.0","id":ID,"result":{"content":[]}}\n\n',
    ": hello\n\nid: 7\nretry: 5\n\n",
    "\n",
    "\r\n\r\n",
    "\u0000\u0000",
    "[]\n",
    "{{{\n",
    "x".repeat(200_000),
  ),
  fc.string({ maxLength: 60 }),
  fc.json({ maxDepth: 2 }).map((text) => `${text}\n`),
);
/** `LARGE` stands for a text above the limit. */
const LARGE_ANSWER =
  '{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[{"type":"text","text":"LARGE"}]}}';
const bytes = fc.array(fc.oneof(piece, fc.uint8Array({ maxLength: 40 })), { maxLength: 5 });
const ending = fc.constantFrom("nothing", "end", "die", "answer");
const head = fc.record({
  status: fc.constantFrom(200, 200, 200, 201, 202, 204, 301, 307, 400, 401, 403, 404, 405, 413, 429, 500, 502, 503),
  type: fc.constantFrom("application/json", "text/event-stream", "text/html", "APPLICATION/JSON; charset=x", "", "%%%"),
  more: fc.dictionary(
    fc.constantFrom(
      "location",
      "retry-after",
      "content-length",
      "content-encoding",
      "mcp-session-id",
      "www-authenticate",
    ),
    fc.constantFrom("0", "5", "/mcp", "http://127.0.0.1:9/", "gzip", "-1", "Bearer error=x", "99999999999"),
    { maxKeys: 2 },
  ),
});
const where = fc.constantFrom("server/discover", "initialize", "tools/list", "tools/call", "subscriptions/listen");

interface Plan {
  readonly at: string;
  readonly bytes: readonly (string | Uint8Array)[];
  readonly ending: string;
  readonly delay: number;
  readonly head?: { status: number; type: string; more: Record<string, string> };
}

/** Plans that are tried in every run, with the guard each is for. */
const large = { at: "tools/call", ending: "nothing", delay: 0 };
const cut = { at: "tools/call", bytes: [": hello\n\n"], ending: "end", delay: 0 };
type Example = [Omit<Plan, "head">, Plan["head"], "modern" | "legacy"];
const OVER_STDIO: Example[] = [
  [{ ...large, bytes: [`${LARGE_ANSWER}\n`] }, undefined, "modern"],
  [{ ...cut, bytes: ["half a line"] }, undefined, "legacy"],
];
const OVER_HTTP: Example[] = (["modern", "legacy"] as const).flatMap((era): Example[] => [
  [{ ...large, bytes: [LARGE_ANSWER] }, { status: 200, type: "application/json", more: {} }, era],
  [{ ...large, bytes: [`data: ${LARGE_ANSWER}\n\n`] }, { status: 200, type: "text/event-stream", more: {} }, era],
  [cut, { status: 200, type: "text/event-stream", more: {} }, era],
  [cut, { status: 202, type: "text/event-stream", more: {} }, era],
]);

/** Whether a plan surely leaves a call without an answer, so that waiting for one is of no use. */
function isCut({ at, bytes, ending, head }: Plan): boolean {
  // a stream with ids is gone on with; a busy server is waited for; a body may be shorter than announced
  if (at !== "tools/call" || bytes.some((part) => typeof part === "string" && part.includes("id:"))) return false;
  if (head) return !("content-length" in head.more) && !("retry-after" in head.more);
  return ending === "end" || ending === "die";
}

async function misbehave(plan: Plan, request: StubRequest, reply: StubReply) {
  if (plan.delay > 0) await new Promise((resolve) => setTimeout(resolve, plan.delay));
  if (plan.head) {
    const headers = { ...plan.head.more, ...(plan.head.type && { "content-type": plan.head.type }) };
    const text = plan.bytes.map((part) => fill(part, request)).join("");
    reply.http(plan.head.status, headers, text);
  } else for (const part of plan.bytes) reply.raw(fill(part, request));
  if (plan.ending === "end") reply.end();
  if (plan.ending === "die") reply.die();
  if (plan.ending === "answer" && !plan.head) return { content: [] };
}

function fill(part: string | Uint8Array, { id }: StubRequest): string | Uint8Array {
  return typeof part === "string"
    ? part.replaceAll("ID", JSON.stringify(id ?? 0)).replace("LARGE", "y".repeat(2 * LIMIT))
    : part;
}

async function settles(client: Client, work: Promise<unknown>): Promise<void> {
  const began = performance.now();
  await work.then(
    (result) => expect(JSON.stringify(result).length).toBeLessThan(2 * LIMIT),
    (error: unknown) => expect(error).toHaveProperty("code"),
  );
  expect(performance.now() - began).toBeLessThan(SETTLED_MS);
  // the other server does not notice
  expect(await client.callTool("good", "t", {}, { timeoutMs: 10_000 })).toMatchObject({ isError: false });
}

async function run(plan: Plan, stub: StdioStub | HttpStub, good: HttpStub): Promise<void> {
  const bad = { ...stub.config, connectTimeoutMs: CONNECT_MS, maxResponseBytes: LIMIT };
  const client = createClient({ servers: { bad, good: good.config } });
  try {
    const ms = isCut(plan) ? NOT_NEEDED_MS : CALL_MS;
    const limits = { timeoutMs: ms, totalTimeoutMs: ms };
    const listing = client.listTools();
    await settles(client, client.callTool("bad", "t", {}, limits));
    await settles(client, Promise.race([listing, client.callTool("bad", "t", {}, limits)]));
  } finally {
    const began = performance.now();
    await client.close();
    expect(performance.now() - began).toBeLessThan(4_000);
    await expect.poll(() => stub.open, { timeout: 10_000 }).toBe(0);
    await stub.close();
  }
}

describe("whatever a server says", () => {
  let good: HttpStub;
  beforeAll(async () => {
    good = await stubHttp();
  });
  afterAll(() => good.close());

  const property = (http: boolean) =>
    fc.asyncProperty(
      fc.record({ at: where, bytes, ending, delay: fc.constantFrom(0, 0, 0, 30) }),
      http ? fc.option(head, { nil: undefined }) : fc.constant(undefined),
      fc.constantFrom("modern" as const, "legacy" as const),
      async (base, top, era) => {
        const plan: Plan = { ...base, ...(top && { head: top }) };
        const on = { [plan.at]: (request: StubRequest, reply: StubReply) => misbehave(plan, request, reply) };
        await run(plan, await (http ? stubHttp({ era, on }) : stubStdio({ era, on })), good);
      },
    );

  it("on its standard output, every call ends and nobody else notices", { timeout: TIMEOUT_MS }, async () => {
    await fc.assert(property(false), { numRuns: RUNS, endOnFailure: true, examples: OVER_STDIO });
    expect(unhandled).toEqual([]);
  });

  it("over HTTP, every call ends and nobody else notices", { timeout: TIMEOUT_MS }, async () => {
    await fc.assert(property(true), { numRuns: RUNS * 2, endOnFailure: true, examples: OVER_HTTP });
    expect(unhandled).toEqual([]);
    await expect.poll(() => good.open, { timeout: 10_000 }).toBe(0);
  });
});

describe("the buffer of a pipe", () => {
  const message = fc.record({ id: fc.oneof(fc.integer(), fc.string()), padding: fc.string({ maxLength: 50 }) });

  it("finds the same messages however the bytes are cut, and names each that is too long", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 8 }), fc.integer({ min: 1, max: 40 }), (messages, size) => {
        const limit = 80;
        const lines = messages.map(({ id, padding }) =>
          JSON.stringify({ result: { id: "inner", padding }, jsonrpc: "2.0", id }),
        );
        const all = Buffer.from(lines.map((line) => `${line}\n`).join(""));
        const refused: unknown[] = [];
        const buffer = new LineBuffer(limit, (id) => refused.push(id));
        const found: unknown[] = [];
        for (let at = 0; at < all.length; at += size) {
          buffer.append(all.subarray(at, at + size));
          for (let next = buffer.readMessage(); next; next = buffer.readMessage()) found.push("id" in next && next.id);
        }
        const fits = (line: string) => Buffer.byteLength(line) <= limit;
        const ids = (keep: boolean) => messages.filter((_, n) => fits(lines[n] ?? "") === keep).map(({ id }) => id);
        expect(found).toEqual(ids(true));
        expect(refused).toEqual(ids(false));
      }),
      { numRuns: 300 },
    );
  });

  it("reads the id of a message wherever it stands, and none that stands deeper", () => {
    const value = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), value),
        fc.option(fc.oneof(fc.integer(), fc.string({ maxLength: 20 }))),
        fc.nat(5),
        (rest, id, at) => {
          const entries = Object.entries(rest).filter(([key]) => key !== "id");
          if (id !== null) entries.splice(at, 0, ["id", id]);
          const text = `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${JSON.stringify(item)}`).join(",")}}`;
          const scanner = new IdScanner();
          scanner.push(Buffer.from(text));
          expect(scanner.id).toBe(id ?? undefined);
        },
      ),
      { numRuns: 300 },
    );
  });
});
