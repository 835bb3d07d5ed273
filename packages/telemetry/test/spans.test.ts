import { spawnSync } from "node:child_process";
import { type Client, createClient } from "@tenon/client";
import { createServer, ToolError } from "@tenon/server";
import { openTelemetry, type Telemetry } from "@tenon/telemetry";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { program } from "../../../test/programs.ts";
import { type Collector, type SentSpan, startCollector } from "./collector.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${TRACE}-b7ad6b7169203331-01`;
const SERVER = 2;
const CLIENT = 3;

let collector: Collector;
let telemetry: Telemetry;
const closing: (() => Promise<unknown>)[] = [];

/** Two servers: one that tells contents, and one that does not. */
async function serve(content: boolean): Promise<string> {
  const server = createServer({
    name: content ? "open" : "shut",
    version: "1.0.0",
    logSink: () => undefined,
    ...(content && { telemetry: { content: { keys: ["iban"], patterns: ["bearer"] } } }),
  });
  server.tool("pay", { input: z.object({ iban: z.string(), to: z.string() }) }, ({ to }) => `paid ${to}`);
  server.tool("sure", {}, async (_, ctx) => (await ctx.elicit("Sure?", z.boolean())).action);
  server.tool("closed", {}, () => {
    throw new ToolError("Closed on Sundays");
  });
  server.resource("note://one", {}, () => "a note");
  server.prompt("greet", {}, () => "hello");
  closing.push(() => server.close());
  return (await server.listen({ port: 0 })).url;
}

let shut: string;
let client: Client;

beforeAll(async () => {
  collector = await startCollector();
  process.env.OTEL_BSP_SCHEDULE_DELAY = "20";
  telemetry = await openTelemetry({ serviceName: "test", otlp: { url: `${collector.url}/` }, metrics: false });
  shut = await serve(false);
  const open = await serve(true);
  client = createClient({
    servers: {
      shut: { url: shut },
      open: { url: open },
      piped: {
        command: process.execPath,
        args: [await program("./stdio-hop.ts", import.meta.url)],
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "20" },
      },
      many: { replicas: [shut] },
      away: { url: "http://127.0.0.1:1/mcp" },
    },
    elicitation: async () => ({ action: "accept", content: { value: true } }),
    telemetry: { content: true },
  });
});
afterAll(async () => {
  await client.close();
  for (const close of closing) await close();
  await telemetry.close();
  delete process.env.OTEL_BSP_SCHEDULE_DELAY;
  await collector.close();
});

/** The spans of both sides of what `work` does under a trace of its own. */
async function traceOf(work: (meta: { traceparent: string }) => Promise<unknown>, servers = 1) {
  const id = TRACE.slice(0, 28) + String(Math.floor(Math.random() * 9_000) + 1_000);
  const meta = { traceparent: traceparent.replace(TRACE, id) };
  await work(meta).catch(() => undefined);
  const mine = (kind: number) => (span: SentSpan) => span.traceId === id && span.kind === kind;
  const sent = await collector.span(mine(CLIENT));
  if (servers > 0) await collector.span(mine(SERVER));
  return { client: sent, servers: collector.spans.filter(mine(SERVER)) };
}

describe("a call", () => {
  it("is a client's span below what its caller's meta names, and a server's span below that", async () => {
    const { client: sent, servers } = await traceOf((meta) =>
      client.callTool("shut", "pay", { iban: "DE89", to: "ann" }, { meta }),
    );
    expect(sent).toMatchObject({ name: "tools/call pay", parentSpanId: "b7ad6b7169203331", status: 0 });
    expect(servers).toMatchObject([{ name: "tools/call pay", parentSpanId: sent.spanId, status: 0 }]);
    expect(servers[0]?.attributes).toMatchObject({
      "network.transport": "tcp",
      "client.address": "127.0.0.1",
      "tenon.outcome": "ok",
    });
  });

  it("says which replica of its server it went to", async () => {
    const args = { iban: "DE89", to: "ann" };
    const { client: sent } = await traceOf((meta) => client.callTool("many", "pay", args, { meta }));
    expect(sent.attributes).toMatchObject({ "tenon.server": "many", "server.port": Number(new URL(shut).port) });
  });

  it("goes through a pipe as well", async () => {
    const { client: sent, servers } = await traceOf((meta) => client.callTool("piped", "ping", {}, { meta }));
    expect(sent.attributes["network.transport"]).toBe("pipe");
    expect(servers).toMatchObject([
      { service: "piped", parentSpanId: sent.spanId, attributes: { "network.transport": "pipe" } },
    ]);
  });

  it("that asks is one span of its client and one of its server for each round", async () => {
    const { client: sent, servers } = await traceOf((meta) => client.callTool("shut", "sure", {}, { meta }));
    await collector.span((span) => span.parentSpanId === sent.spanId && span.attributes["tenon.outcome"] === "ok");
    const rounds = collector.spans.filter(({ parentSpanId }) => parentSpanId === sent.spanId);
    expect(servers.length).toBeGreaterThan(0);
    expect(rounds.map(({ attributes }) => attributes["tenon.outcome"])).toEqual(["suspended", "ok"]);
  });

  it("that fails says so with a word, and what was the caller's mistake is no failure of the server", async () => {
    const closed = await traceOf((meta) => client.callTool("shut", "closed", {}, { meta }));
    expect(closed.client).toMatchObject({ status: 2, attributes: { "error.type": "tool_error" } });
    expect(closed.servers).toMatchObject([{ status: 2, attributes: { "error.type": "tool_error" } }]);
    const unknown = await traceOf((meta) => client.getPrompt("shut", "greeting", {}, { meta }));
    expect(unknown.client).toMatchObject({ status: 2, attributes: { "rpc.response.status_code": "-32602" } });
    expect(unknown.servers).toMatchObject([{ status: 0, attributes: { "rpc.response.status_code": "-32602" } }]);
    const away = await traceOf((meta) => client.callTool("away", "pay", {}, { meta }), 0);
    expect(away.client).toMatchObject({ status: 2, attributes: { "error.type": "unreachable" } });
  });

  it("is told with its contents only by the side that may, after redaction", async () => {
    const args = { iban: "DE89 3704", to: "Bearer abc123456" };
    const { client: sent, servers } = await traceOf((meta) => client.callTool("open", "pay", args, { meta }));
    expect(servers[0]?.attributes).toMatchObject({
      "gen_ai.tool.call.arguments": '{"iban":"[redacted]","to":"[redacted]"}',
      "gen_ai.tool.call.result": '[{"type":"text","text":"paid [redacted]"}]',
    });
    expect(sent.attributes["gen_ai.tool.call.arguments"]).toContain("DE89"); // the default rules know no IBAN
    expect(sent.attributes["gen_ai.tool.call.arguments"]).not.toContain("abc123456");
    const long = await traceOf((meta) => client.callTool("open", "pay", { iban: "", to: "x".repeat(9_000) }, { meta }));
    expect(String(long.client.attributes["gen_ai.tool.call.arguments"])).toHaveLength(4_096);
    const shut = await traceOf((meta) => client.callTool("shut", "pay", args, { meta }));
    expect(Object.keys(shut.servers[0]?.attributes ?? {}).filter((key) => /arguments|result/.test(key))).toEqual([]);
  });

  it("is told without what is secret in the words of its error", async () => {
    const token = "Bearer abc123456";
    const { servers } = await traceOf((meta) => client.getPrompt("open", `greet ${token}`, {}, { meta }));
    expect(servers).toHaveLength(1);
    const words = collector.messages.filter((message) => message.includes("Unknown prompt"));
    expect(words.join()).toContain("greet [redacted]");
    expect(words.join()).not.toContain("abc123456");
  });

  it("ends as it would without telemetry, whatever its arguments are", async () => {
    const knot: Record<string, unknown> = {};
    for (const key of ["a", "b", "c"]) knot[key] = knot;
    for (const [args, words] of [
      [{ iban: 10n }, "(value.iban is a bigint"],
      [knot, "(value.a is a cycle"],
    ] as const) {
      const { client: sent } = await traceOf((meta) => client.callTool("open", "pay", args, { meta }), 0);
      expect(sent.attributes["gen_ai.tool.call.arguments"]).toContain(words);
    }
  });

  it("of a tool or a prompt that somebody made up does not become a name of a span", async () => {
    const tool = await traceOf((meta) => client.callTool("shut", "made-up-too", {}, { meta }));
    expect([tool.client.name, tool.servers[0]?.name]).toEqual(["tools/call", "tools/call"]);
    const prompt = await traceOf((meta) => client.getPrompt("shut", "made-up-too", {}, { meta }));
    expect(prompt.servers[0]?.name).toBe("prompts/get");
  });
});

describe("what is read", () => {
  it("has spans of both sides too, without addresses in their names", async () => {
    const read = await traceOf((meta) => client.readResources("shut", ["note://one"], { meta }));
    expect(read.client).toMatchObject({ name: "resources/read", attributes: { "mcp.resource.uri": "note://one" } });
    expect(read.servers).toMatchObject([{ name: "resources/read", parentSpanId: read.client.spanId }]);
    const prompt = await traceOf((meta) => client.getPrompt("shut", "greet", {}, { meta }));
    expect(prompt.servers).toMatchObject([{ name: "prompts/get greet", parentSpanId: prompt.client.spanId }]);
  });
});

describe("a server", () => {
  async function post(body: Record<string, unknown>, headers: Record<string, string> = {}): Promise<Response> {
    const accept = "application/json, text/event-stream";
    return fetch(shut, {
      method: "POST",
      headers: { "content-type": "application/json", accept, ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }),
    });
  }

  it("continues a trace of the older revision, on the fast road and beside it", async () => {
    for (const [origin, id] of [
      [undefined, "1af7651916cd43dd8448eb211c80319c"],
      [new URL(shut).origin, "2af7651916cd43dd8448eb211c80319c"], // a page's request takes the protocol layer's road
    ] as const) {
      const meta = { traceparent: traceparent.replace(TRACE, id) };
      const params = { name: "pay", arguments: { iban: "1", to: "bob" }, _meta: meta };
      const response = await post({ method: "tools/call", params }, origin === undefined ? {} : { origin });
      expect(response.status).toBe(200);
      const span = await collector.span(({ traceId, kind }) => traceId === id && kind === SERVER);
      expect(span).toMatchObject({ name: "tools/call pay", parentSpanId: "b7ad6b7169203331" });
      expect(span.attributes["mcp.protocol.version"]).toBe("2025-11-25");
    }
  });

  it("begins one of its own where what came is none, and names no tool that a caller made up", async () => {
    const params = { name: "made-up", _meta: { traceparent: "00-0-0-01" } };
    await post({ method: "tools/call", params });
    const span = await collector.span(
      ({ kind, attributes }) => kind === SERVER && attributes["gen_ai.tool.name"] === "made-up",
    );
    expect(span).toMatchObject({ name: "tools/call", parentSpanId: "", status: 0 });
  });
});

describe("a program without telemetry", () => {
  it("loads no part of OpenTelemetry, although it serves and calls", async () => {
    const plain = await program("./plain-hop.ts", import.meta.url);
    const { stdout, stderr } = spawnSync(process.execPath, [plain], { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual({ text: "pong", loaded: [] });
  });
});
