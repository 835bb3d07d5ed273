import { createMcpHandler, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { legacyHandler, listen } from "../../test/servers.ts";
import { clientOf, type Shop, shop } from "../../test/shop.ts";
import { stubHttp } from "../../test/stub/index.ts";
import {
  type CallOptions,
  createClient,
  type Interceptor,
  renderText,
  type ToolResult,
  type ToolRuntime,
} from "../index.ts";
import { type CacheOptions, cache } from "./cache.ts";

const readOnly = { readOnlyHint: true };
const text = (result: ToolResult) => renderText(result.content, result.structured);
const open = (server: Shop, options: Partial<CacheOptions> = {}) =>
  clientOf(server.url, { interceptors: [cache({ ttlMs: 60_000, ...options })] });

describe("cache", () => {
  it("gives a read-only tool's result again for the same arguments, in whatever order they stand", async () => {
    const server = await shop({ look: { annotations: readOnly } });
    const client = open(server);
    expect(text(await client.callTool("s", "look", { a: 1, b: { c: 2, d: 3 } }))).toBe("run 1");
    expect(text(await client.callTool("s", "look", { b: { d: 3, c: 2 }, a: 1 }))).toBe("run 1");
    expect(text(await client.callTool("s", "look", { a: 2 }))).toBe("run 2");
  });

  it("gives a result that is nested too deeply to keep, and asks for it again", async () => {
    const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    let calls = 0;
    const server = await stubHttp({
      onHttp: (_, res, body) => {
        const { id, method } = body === "" ? {} : JSON.parse(body);
        const list =
          '{"tools":[{"name":"t","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}],"resultType":"complete","ttlMs":60000,"cacheScope":"private"}';
        if (method !== "tools/list" && method !== "tools/call") return undefined;
        if (method === "tools/call") calls += 1;
        const result =
          method === "tools/list" ? list : `{"content":[],"structuredContent":{"n":${deep}},"resultType":"complete"}`;
        res.writeHead(200, { "content-type": "application/json" });
        res.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`);
        return true;
      },
    });
    onTestFinished(() => server.close());
    await using client = createClient({ servers: { s: server.config }, interceptors: [cache({ ttlMs: 60_000 })] });
    for (let i = 0; i < 2; i++) expect((await client.callTool("s", "t")).isError).toBe(false);
    expect(calls).toBe(2);
  });

  it("keeps nothing of other tools, of errors, and of tools nobody lists", async () => {
    const server = await shop({
      pay: {},
      bad: { annotations: readOnly, work: () => ({ isError: true }) },
    });
    const client = open(server);
    for (const name of ["pay", "bad"]) {
      await client.callTool("s", name);
      await client.callTool("s", name);
    }
    expect(server.runs).toEqual({ pay: 2, bad: 2 });
    const lost = await shop({ look: { annotations: readOnly } });
    let fails = true;
    const failing: Interceptor = (request, next) => (fails ? Promise.reject(new Error("lost")) : next(request));
    const other = clientOf(lost.url, { interceptors: [cache({ ttlMs: 60_000 }), failing] });
    await expect(other.callTool("s", "look")).rejects.toThrow("lost");
    fails = false;
    expect(text(await other.callTool("s", "look"))).toBe("run 1");
  });

  it("never gives one caller what another got", async () => {
    const server = await shop({ look: { annotations: readOnly } });
    const client = open(server, { key: ({ runtime }) => runtime.threadId ?? "" });
    const calls: CallOptions[] = [
      { headers: { Authorization: "Bearer ann" } },
      { headers: { authorization: "Bearer bob" } },
      { runtime: { context: { userId: "ann" } } },
      { runtime: { context: { userId: "bob" } } },
      { meta: { "example.com/tenant": "t1" } },
      { meta: { "example.com/tenant": "t2" } },
      { runtime: { threadId: "1" } },
      {},
    ];
    for (const call of calls) await client.callTool("s", "look", {}, call);
    expect(server.runs.look).toBe(calls.length);
    for (const call of calls) await client.callTool("s", "look", {}, call);
    expect(server.runs.look).toBe(calls.length);
    await client.callTool("s", "look", {}, { headers: { AUTHORIZATION: "Bearer ann" } });
    await client.callTool("s", "look", {}, { meta: { "dev.tenon/idempotency-key": crypto.randomUUID() } });
    expect(server.runs.look).toBe(calls.length);
    // a context that cannot be compared is nobody else's
    for (let i = 0; i < 2; i++) await client.callTool("s", "look", {}, { runtime: { context: { id: 1n } } });
    expect(server.runs.look).toBe(calls.length + 2);
  });

  it("keeps clients apart that share it, since each may be somebody else's", async () => {
    const server = await shop({ look: { annotations: readOnly } });
    const shared = cache({ ttlMs: 60_000 });
    for (let i = 0; i < 2; i++) await clientOf(server.url, { interceptors: [shared] }).callTool("s", "look");
    expect(server.runs.look).toBe(2);
  });

  it("gives everybody a result of their own", async () => {
    const server = await shop({ look: { annotations: readOnly, work: () => ({ structuredContent: { a: [1] } }) } });
    const client = open(server);
    const first = await client.callTool("s", "look");
    (first.structured as { a: number[] }).a.push(2);
    const second = await client.callTool("s", "look");
    (second.structured as { a: number[] }).a.push(3);
    expect((await client.callTool("s", "look")).structured).toEqual({ a: [1] });
  });

  it("sends a call that is under way only once", async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const server = await shop({ look: { annotations: readOnly, work: (run) => gate.then(() => `run ${run}`) } });
    const client = open(server);
    const calls = Array.from({ length: 5 }, () => client.callTool("s", "look"));
    while (server.runs.look !== 1) await new Promise((resolve) => setTimeout(resolve, 10));
    release();
    expect((await Promise.all(calls)).map(text)).toEqual(Array(5).fill("run 1"));
    expect(server.runs.look).toBe(1);
  });

  it("lets those who wait go on themselves when the one they wait for is cancelled", async () => {
    let first = true;
    const never = new Promise<string>(() => {});
    const work = (run: number) => {
      if (!first) return `run ${run}`;
      first = false;
      return never;
    };
    const server = await shop({ look: { annotations: readOnly, work } });
    const client = open(server);
    await client.listTools();
    const cancel = new AbortController();
    const leader = expect(client.callTool("s", "look", {}, { signal: cancel.signal })).rejects.toMatchObject({
      code: "cancelled",
    });
    const follower = client.callTool("s", "look");
    while (server.runs.look !== 1) await new Promise((resolve) => setTimeout(resolve, 10));
    cancel.abort();
    await leader;
    expect(text(await follower)).toBe("run 2");
  });

  it("forgets after its time, and keeps a bounded number and size", async () => {
    const work = (run: number, args: Record<string, unknown>) => `${run} ${"x".repeat(Number(args.size ?? 0))}`;
    const server = await shop({ look: { annotations: readOnly, work } });
    const brief = open(server, { ttlMs: 20 });
    await brief.callTool("s", "look");
    await new Promise((resolve) => setTimeout(resolve, 60));
    await brief.callTool("s", "look");
    expect(server.runs.look).toBe(2);
    const few = open(server, { maxEntries: 2 });
    for (const id of ["a", "b", "a", "c", "a", "b"]) await few.callTool("s", "look", { id });
    expect(server.runs.look).toBe(6); // a, b, c, and b again, which was used longest ago when c came
    const small = open(server, { maxChars: 4_000 });
    for (let i = 0; i < 2; i++) await small.callTool("s", "look", { size: 2_000 });
    expect(server.runs.look).toBe(8);
  });

  it.each(["modern", "legacy"] as const)("keeps nothing that a person was asked for (%s server)", async (era) => {
    const make = () => {
      const server = new McpServer({ name: "asks", version: "1.0.0" });
      const message = "Which?";
      const requestedSchema = { type: "object" as const, properties: { n: { type: "number" as const } } };
      server.registerTool("look", { inputSchema: z.object({}), annotations: readOnly }, (_, ctx) => {
        const answer = ctx.mcpReq.inputResponses?.q;
        if (answer) return { content: [{ type: "text", text: JSON.stringify(answer) }] };
        return inputRequired({ inputRequests: { q: inputRequired.elicit({ message, requestedSchema }) } });
      });
      return server;
    };
    const handler = createMcpHandler(make, { legacy: "reject" });
    const server = await listen(era === "modern" ? (request) => handler.fetch(request) : legacyHandler(make));
    onTestFinished(() => server.kill());
    let asked = 0;
    const client = clientOf(server.url, {
      interceptors: [cache({ ttlMs: 60_000 }), async (request, next) => ({ ...(await next(request)) })],
      elicitation: () => ({ action: "accept", content: { n: ++asked } }),
    });
    const answers = [text(await client.callTool("s", "look")), text(await client.callTool("s", "look"))];
    expect(answers).toEqual([expect.stringContaining('"n":1'), expect.stringContaining('"n":2')]);
    expect(client.servers()[0]?.era).toBe(era);
  });

  it("keeps nothing that another layer made", async () => {
    const server = await shop({ look: { annotations: readOnly } });
    let made = 0;
    const make: Interceptor<ToolRuntime, "message"> = async () => {
      made++;
      return "message";
    };
    await using client = createClient({
      servers: { s: { url: server.url } },
      interceptors: [cache({ ttlMs: 60_000 }), make],
    });
    for (let i = 0; i < 2; i++) expect(await client.callTool("s", "look")).toBe("message");
    expect(made).toBe(2);
  });

  it("needs a time", () => expect(() => cache({ ttlMs: 0 })).toThrow("must be positive"));
});
