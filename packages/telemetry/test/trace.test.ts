import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { programs } from "../../../test/programs.ts";
import { type Collector, type SentSpan, startCollector } from "./collector.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-trace-"));
const children: ChildProcess[] = [];
const lines: string[] = [];
let collector: Collector;

/** Starts one of the programs and waits until it is ready. @returns what it said with that */
async function start(entry: string, ...args: string[]): Promise<string> {
  const env = {
    ...process.env,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: "x-key=collector-key",
    OTEL_BSP_SCHEDULE_DELAY: "50",
  };
  const child = spawn(process.execPath, [entry, ...args], { stdio: ["ignore", "pipe", "inherit"], env });
  children.push(child);
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`${args[0]} ended with ${code}`)));
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      lines.push(`${args[0]} ${line}`);
      if (line.startsWith("ready")) resolve(line.slice("ready ".length));
    });
  });
}

beforeAll(async () => {
  collector = await startCollector();
  const files = ["hop.ts", "hop-agent.ts"].map((name) => fileURLToPath(new URL(name, import.meta.url)));
  const [entry = "", agent = ""] = await programs(files);
  const [stock] = await Promise.all([start(entry, "stock", folder), start(entry, "stock-worker", folder)]);
  const shop = await start(entry, "shop", folder, stock);
  await start(agent, "agent", folder, shop);
}, 60_000);
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await collector.close();
  rmSync(folder, { recursive: true, force: true });
});

const of = (service: string, name: string) => (span: SentSpan) => span.service === service && span.name === name;
const all = (service: string, name: string): SentSpan[] => collector.spans.filter(of(service, name));

describe("a call through four processes, with an approval and a question on the way", () => {
  it("is one trace: agent, client, server, its own client, the next server, and the worker of a task", async () => {
    const run = await collector.span(of("stock-worker", "tasks/run count"));
    const created = await collector.span(of("stock", "tools/call count"));
    const further = await collector.span(of("shop", "tools/call count"));
    const answered = await collector.span((span) => span.spanId === further.parentSpanId);
    const resumed = await collector.span((span) => span.spanId === answered.parentSpanId);
    expect(run.parentSpanId).toBe(created.spanId);
    expect(created.parentSpanId).toBe(further.spanId);
    expect(of("shop", "tools/call have")(answered)).toBe(true);
    expect(of("agent", "tools/call have")(resumed)).toBe(true);
    expect([run, created, further, answered].map(({ kind }) => kind)).toEqual([5, 2, 3, 2]); // consumer, server, client, server
    const trace = collector.spans.filter(({ traceId }) => traceId === run.traceId);
    expect(new Set(trace.map(({ service }) => service))).toEqual(new Set(["agent", "shop", "stock", "stock-worker"]));
  });

  it("stays that trace when the thread waits for a person, each run below what it answers", async () => {
    const runs = await collector
      .span((span) => span.name === "invoke_agent desk")
      .then(() => all("agent", "invoke_agent desk"));
    expect(runs).toHaveLength(3); // until the approval, until the question, to the end
    const [first] = runs.filter(({ parentSpanId }) => parentSpanId === "");
    expect(new Set(runs.map(({ traceId }) => traceId)).size).toBe(1);
    const second = runs.find(({ parentSpanId }) => parentSpanId === first?.spanId);
    const asking = all("agent", "tools/call have").find(({ parentSpanId }) => parentSpanId === second?.spanId);
    expect(asking?.attributes["tenon.outcome"]).toBe("suspended");
    expect(runs.some(({ parentSpanId }) => parentSpanId === asking?.spanId)).toBe(true);
    expect(first?.attributes).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.conversation.id": "t1",
    });
    expect(collector.spans.filter(({ status }) => status === 2)).toEqual([]);
  });

  it("has the attributes of the conventions, and neither arguments nor results", () => {
    const [call] = all("agent", "tools/call have");
    expect(call?.attributes).toMatchObject({
      "mcp.method.name": "tools/call",
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "have",
      "mcp.protocol.version": "2026-07-28",
      "network.transport": "tcp",
      "server.address": "127.0.0.1",
      "server.port": expect.any(Number),
    });
    expect(JSON.stringify(collector.spans)).not.toContain("teapots");
  });

  it("is named in the log lines of every process it went through", () => {
    const { traceId } = all("stock", "tools/call count")[0]!;
    const logged = lines.flatMap((line) => / log (.*)$/.exec(line)?.[1] ?? []).map((line) => JSON.parse(line));
    expect(logged.map(({ server, message, traceId }) => ({ server, message, traceId }))).toEqual([
      { server: "stock", message: "counted", traceId },
      { server: "shop", message: "asked the stock", traceId },
    ]);
  });

  it("is named in the audit trail, with what a person decided", () => {
    const { traceId } = all("stock", "tools/call count")[0]!;
    const records = lines.flatMap((line) => /^agent audit (.*)$/.exec(line)?.[1] ?? []).map((line) => JSON.parse(line));
    expect(records.map(({ kind, data }) => [kind, data.traceId, data.outcome, data.approval?.decision])).toEqual([
      ["intent", traceId, undefined, "approve"],
      ["outcome", traceId, "suspended", undefined],
      ["intent", traceId, undefined, "approve"],
      ["outcome", traceId, "ok", undefined],
    ]);
    expect(lines.find((line) => line.startsWith("agent trail"))).toContain('"intact":true');
  });

  it("goes to the collector that the standard variables name, with their headers", () => {
    expect(collector.headers.every((headers) => headers["x-key"] === "collector-key")).toBe(true);
  });
});
