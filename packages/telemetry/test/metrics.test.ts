import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createClient } from "@tenon/client";
import { gauge } from "@tenon/core/internal";
import { createServer } from "@tenon/server";
import { openTelemetry } from "@tenon/telemetry";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

// it has no types of its own
const parsePrometheus = createRequire(import.meta.url)("parse-prometheus-text-format") as (
  text: string,
) => { name: string }[];

const stops: (() => unknown)[] = [];
let scraped: string;
let mcp: string;
let adminUrl: string;

function shop() {
  const server = createServer({ name: "shop", version: "1.0.0", logSink: () => undefined });
  server.tool("price", { input: z.object({ of: z.string() }) }, ({ of }) => `${of}: 3`);
  server.tool("broken", {}, () => {
    throw new Error("inside");
  });
  server.tool("sure", {}, async (_, ctx) => (await ctx.elicit("Sure?", z.boolean())).action);
  server.tool("report", { task: "optional" }, () => "done");
  return server;
}

/** A contract that is agreed on, one of which the server knows no such version, and what older clients do; each once. */
async function negotiate(): Promise<void> {
  const server = createServer({
    name: "desk",
    version: "1.0.0",
    logSink: () => undefined,
    contract: { schema: z.object({ user_id: z.string() }) },
  });
  stops.push(() => server.close());
  server.tool("look", {}, () => "looked");
  const { url } = await server.listen({ port: 0 });
  const client = createClient({ servers: { desk: { url, contract: { context: { user_id: "ann" } } } } });
  stops.push(() => client.close());
  await client.listTools();
  const post = (path: string, body: object, headers: object = {}) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }),
    });
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover" };
  const discover = (asked: object) =>
    post("", { method: "server/discover", params: { _meta: { ..._meta, ...asked } } }, headers);
  const without = { "dev.tenon/contract": "0.4.2", "dev.tenon/contract-without": ["expires_at"] };
  const answers = [
    await discover({}), // asks for no contract: no negotiation
    await discover(without),
    await discover({ "dev.tenon/contract": "9.9.9" }),
    await post("/handshake", { method: "mcp.handshake", params: { protocol_version: "0.4.1" } }),
    await post("/handshake", { method: "mcp.handshake", params: { protocol_version: "9.9.9" } }),
  ];
  const bodies = await Promise.all(answers.map(async (answer) => (await answer.json()) as { error?: object }));
  expect(bodies.map(({ error }) => error !== undefined)).toEqual([false, false, true, false, true]);
}

/** Everything a server counts, once. */
beforeAll(async () => {
  const telemetry = await openTelemetry({ serviceName: "shop" });
  stops.push(() => telemetry.close());
  const server = shop();
  stops.push(() => server.close());
  mcp = (await server.listen({ port: 0 })).url;
  const admin = await server.admin({ port: 0, metrics: telemetry });
  adminUrl = admin.url;
  const client = createClient({
    servers: {
      shop: { url: mcp, breaker: {} },
      away: { replicas: [{ url: "http://127.0.0.1:9/mcp", id: "first" }], breaker: { failures: 0 } },
    },
    events: { onServerState: () => undefined },
    elicitation: async () => ({ action: "accept", content: { value: true } }),
  });
  stops.push(() => client.close());
  await client.callTool("shop", "price", { of: "tea" });
  await client.callTool("shop", "broken");
  await client.callTool("shop", "sure");
  await client.callTool("shop", "report");
  await client.callTool("shop", "made-up-by-a-model").catch(() => undefined);
  await negotiate();
  await client.listTools("away");
  const short = createClient({ servers: { closed: { url: mcp, breaker: {} } } });
  await short.close();
  const response = await fetch(`${admin.url}/metrics`);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  scraped = await response.text();
});
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

/** The values of a metric by their labels, as Prometheus writes them. */
function valuesOf(name: string): Record<string, number> {
  const line = new RegExp(`^${name}\\{([^}]*)\\} (\\S+)$`, "gm");
  return Object.fromEntries(
    [...scraped.matchAll(line)].map(([, labels = "", value]) => [labels.replaceAll('"', ""), Number(value)]),
  );
}

describe("the numbers at /metrics", () => {
  it("have the names that are documented, and those of dashboards that exist", () => {
    const names = parsePrometheus(scraped).map(({ name }) => name);
    expect(names.sort()).toEqual([
      "mcp_execution_duration_seconds",
      "mcp_handshake_total",
      "nodejs_eventloop_lag_p99_seconds",
      "nodejs_eventloop_lag_seconds",
      "nodejs_external_memory_bytes",
      "nodejs_heap_size_total_bytes",
      "nodejs_heap_size_used_bytes",
      "process_cpu_seconds_total",
      "process_resident_memory_bytes",
      "process_start_time_seconds",
      "target_info",
      "tenon_breaker_state",
      "tenon_contract_negotiations_total",
      "tenon_elicitations_total",
      "tenon_legacy_sessions",
      "tenon_tasks",
      "tenon_tool_call_duration_seconds",
      "tenon_tool_calls_total",
    ]);
    expect(scraped).not.toContain("otel_scope");
  });

  it("say how many calls ended how, as each side saw it, and never a name that a caller made up", () => {
    expect(valuesOf("tenon_tool_calls_total")).toEqual({
      "server=shop,tool=price,outcome=ok,side=server": 1,
      "server=shop,tool=price,outcome=ok,side=client": 1,
      "server=shop,tool=broken,outcome=tool_error,side=server": 1,
      "server=shop,tool=broken,outcome=tool_error,side=client": 1,
      "server=shop,tool=sure,outcome=suspended,side=server": 1, // its question
      "server=shop,tool=sure,outcome=ok,side=server": 1,
      "server=shop,tool=sure,outcome=ok,side=client": 1,
      "server=shop,tool=report,outcome=task,side=server": 1,
      "server=shop,tool=report,outcome=ok,side=client": 1,
      "server=shop,tool=unknown,outcome=error,side=server": 1,
      "server=shop,tool=unknown,outcome=error,side=client": 1,
    });
  });

  it("say how long calls took, under both names", () => {
    const counts = valuesOf("tenon_tool_call_duration_seconds_count");
    expect(counts["server=shop,tool=sure,side=server"]).toBe(2);
    expect(valuesOf("mcp_execution_duration_seconds_count")).toEqual(counts);
    expect(valuesOf("tenon_tool_call_duration_seconds_bucket")["server=shop,tool=price,side=client,le=60"]).toBe(1);
  });

  it("say what people answered, and what state tasks are in", () => {
    expect(valuesOf("tenon_elicitations_total")).toEqual({
      "mode=form,action=accept,side=client": 1,
      "mode=form,action=accept,side=server": 1,
    });
    expect(valuesOf("tenon_tasks")).toMatchObject({ "server=shop,state=completed": 1, "server=shop,state=working": 0 });
    expect(valuesOf("tenon_legacy_sessions")).toMatchObject({ "server=shop": 0 });
  });

  it("say how the breakers of replicas are, while their client is there", () => {
    expect(valuesOf("tenon_breaker_state")).toEqual({
      [`server=shop,replica=${mcp}`]: 0,
      "server=away,replica=first": 2,
    });
  });

  it("say how contracts were agreed on, on both sides, with the label that dashboards that exist have", () => {
    expect(valuesOf("mcp_handshake_total")).toEqual({
      "status=0.4.2,side=client": 1,
      "status=0.4.2,side=server": 1,
      "status=0.4.2 without expires_at,side=server": 1,
      "status=0.4.1,side=server": 1,
      "status=refused,side=server": 2,
    });
  });

  it("tell about the process", () => {
    const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(scraped)?.[1]);
    expect(value("process_cpu_seconds_total")).toBeGreaterThan(0);
    expect(Math.abs(value("process_start_time_seconds") - (Date.now() / 1_000 - process.uptime()))).toBeLessThan(5);
    expect(value("process_resident_memory_bytes")).toBeGreaterThan(value("nodejs_heap_size_used_bytes"));
    expect(value("nodejs_eventloop_lag_seconds")).toBeGreaterThanOrEqual(0);
  });

  it("are on the admin port alone", async () => {
    const path = new URL("/metrics", mcp);
    expect((await fetch(path)).status).toBe(404);
    expect(
      (await fetch(`${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" })).status,
    ).toBe(404);
  });

  it("are not there unless they were given, and the answer says how", async () => {
    const server = createServer({ name: "plain", version: "1.0.0" });
    const { url } = await server.admin({ port: 0 });
    const response = await fetch(`${url}/metrics`);
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual({ error: expect.stringContaining("admin({ port, metrics: telemetry })") });
    await server.close();
  });

  it("come in time although many stores hang", async () => {
    const hanging = Array.from({ length: 5 }, () => gauge("tenon_tasks", () => new Promise(() => undefined)));
    stops.push(...hanging);
    const began = performance.now();
    const response = await fetch(`${adminUrl}/metrics`);
    expect(response.status).toBe(200);
    expect(performance.now() - began).toBeLessThan(4_000); // the wait for one of them is two seconds
    for (const stop of hanging) stop();
    expect(await response.text()).toContain("tenon_tool_calls_total");
  });

  it("that cannot be collected are 503, and the log says why", async () => {
    const logged: string[] = [];
    const server = createServer({ name: "plain", version: "1.0.0", logSink: ({ message }) => logged.push(message) });
    const metrics = { text: () => Promise.reject(new Error("the reader is gone")) };
    const { url } = await server.admin({ port: 0, metrics });
    expect((await fetch(`${url}/metrics`)).status).toBe(503);
    expect(logged).toEqual(["metrics could not be collected: the reader is gone"]);
    await expect(server.admin({ port: 0, metrics: {} as never })).rejects.toMatchObject({ code: "invalid_option" });
    await server.close();
  });
});

describe("the dashboard, the alerts and the documented queries", () => {
  const read = (path: string): string => readFileSync(new URL(`../../../docs/${path}`, import.meta.url), "utf8");
  const dashboard = JSON.parse(read("observing/grafana-dashboard.json")) as {
    panels: { targets: { expr: string }[] }[];
  };
  const queries = {
    "the dashboard": dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join("\n"),
    "the alerts": read("observing/alerts.yaml").replaceAll(/^ +(?:alert|summary|todo):.*$/gm, ""),
    "the page": read("observing.md"),
  };
  const NAME = /\b(?:tenon|mcp|process|nodejs)_[a-z0-9_]+/g;

  it.each(Object.entries(queries))("%s ask for what /metrics tells", (_, text) => {
    const asked = new Set([...text.matchAll(NAME)].map(([name]) => name.replace(/_$/, "")));
    const told = new Set([...scraped.matchAll(/^(\w+?)(?:\{.*)? \S+$/gm)].map(([, name]) => name));
    const families = new Set([...scraped.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name));
    expect(asked.size).toBeGreaterThan(5);
    expect(
      [...asked].filter((name) => !told.has(name) && !families.has(name) && !["process", "nodejs"].includes(name)),
    ).toEqual([]);
  });

  it.each(Object.entries(queries))("%s group by labels that are there", (_, text) => {
    const labels = new Set([...scraped.matchAll(/[{,](\w+)="/g)].map(([, label]) => label));
    const asked = [...text.matchAll(/\bby \(([^)]+)\)/g)].flatMap(([, list = ""]) =>
      list.split(",").map((label) => label.trim()),
    );
    expect(asked.filter((label) => !labels.has(label))).toEqual([]);
  });
});

describe("a program's telemetry", () => {
  it("is set up once", async () => {
    await expect(openTelemetry()).rejects.toMatchObject({ code: "telemetry_open" });
  });
  it("refuses options that nobody understands", async () => {
    await expect(openTelemetry({ servicename: "x" } as object)).rejects.toThrow('did you mean "serviceName"');
    await expect(openTelemetry({ otlp: { url: "collector:4318" } })).rejects.toMatchObject({ code: "invalid_option" });
    await expect(openTelemetry({ otlp: { metrics: true } })).rejects.toMatchObject({ code: "otlp" });
  });
});
