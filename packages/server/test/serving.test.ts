import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { fileURLToPath } from "node:url";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createServer, type LogEntry, type TenonServer } from "../src/index.ts";
import { call as callTool, said } from "./ask.ts";
import { modern, overSocket } from "./raw-requests.ts";
import { connect, effects, type Mode, shop } from "./servers.ts";
import { spawn } from "./spawned.ts";

const stdioServer = fileURLToPath(new URL("./stdio-server.ts", import.meta.url));
const logged: LogEntry[] = [];
let server: TenonServer;
let url: string;

beforeAll(async () => {
  server = shop({ logSink: (entry) => logged.push(entry) });
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());
beforeEach(() => {
  effects.length = 0;
  logged.length = 0;
});

const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]?.text ?? "";

describe.each(["modern", "legacy"] as const)("a server on the %s era", (mode: Mode) => {
  describe.each(["http", "stdio"] as const)("over %s", (transport) => {
    let client: Client;
    beforeAll(async () => {
      client = transport === "http" ? await connect(url, mode) : await spawn(stdioServer, mode);
    });
    afterAll(() => client.close());

    it("lists tools by name with their schemas", async () => {
      const { tools } = await client.listTools();
      expect(tools.map((tool) => tool.name)).toEqual([...tools.map((tool) => tool.name)].sort());
      expect(tools.find((tool) => tool.name === "add")).toMatchObject({
        inputSchema: { type: "object", required: ["a", "b"] },
        annotations: { readOnlyHint: true },
      });
    });
    it("answers calls with text, and with structured content where an output is declared", async () => {
      expect(textOf(await client.callTool({ name: "add", arguments: { a: 2, b: 3 } }))).toBe("5");
      const order = await client.callTool({ name: "order", arguments: { id: "A" } });
      expect(order.structuredContent).toEqual({ id: "A", total: 5 });
      const count = await client.callTool({ name: "count" });
      expect(count.structuredContent).toEqual(mode === "modern" ? 3 : { result: 3 });
      expect(await client.callTool({ name: "both" })).toMatchObject({
        content: [{ type: "text", text: "for the model" }],
        structuredContent: { for: "programs" },
      });
    });
    it("names every wrong argument", async () => {
      const result = await client.callTool({ name: "add", arguments: { a: "x" } });
      expect(result.isError).toBe(true);
      expect(textOf(result)).toMatch(/Invalid arguments for add: a: .*number.*; b: .*number/);
    });
    it("lets a ToolError through and masks everything else", async () => {
      expect(textOf(await client.callTool({ name: "refuse" }))).toBe("Order 7 does not exist");
      expect(textOf(await client.callTool({ name: "leak" }))).toMatch(/^Tool leak failed \(reference [2-9A-Z]{6}\)$/);
      expect(textOf(await client.callTool({ name: "nan" }))).toMatch(/^Tool nan failed/);
    });
    it("refuses an unknown tool and suggests the near one", async () => {
      await expect(client.callTool({ name: "ordr" })).rejects.toMatchObject({
        code: -32602,
        message: expect.stringContaining('"order"'),
      });
    });
    it("reads resources and templates, and says when there is none", async () => {
      const policy = await client.readResource({ uri: "company://policies/return" });
      expect(policy.contents).toEqual([
        { uri: "company://policies/return", mimeType: "text/markdown", text: "# Returns" },
      ]);
      const detail = await client.readResource({ uri: "order://u1/o2/detail" });
      expect(detail.contents[0]).toMatchObject({ text: '{"user":"u1","id":"o2"}' });
      await expect(client.readResource({ uri: "company://nothing" })).rejects.toThrow();
      expect((await client.listResourceTemplates()).resourceTemplates[0]?.uriTemplate).toBe(
        "order://{user}/{id}/detail",
      );
    });
    it("renders prompts and checks their arguments", async () => {
      const prompt = await client.getPrompt({ name: "reply", arguments: { id: "7" } });
      expect(prompt.messages).toEqual([{ role: "user", content: { type: "text", text: "About 7" } }]);
      expect((await client.listPrompts()).prompts[0]?.arguments).toEqual([
        { name: "id", required: true, description: "order" },
        { name: "note", required: false },
      ]);
      await expect(client.getPrompt({ name: "reply" })).rejects.toMatchObject({ code: -32602 });
    });
    it("reports progress in order to the caller that asked", async () => {
      const seen: string[] = [];
      await client.callTool(
        { name: "slow", arguments: { steps: 3 } },
        { onprogress: (p) => seen.push(`${p.progress}/${p.total} ${p.message}`) },
      );
      expect(seen).toEqual(["1/3 step 1", "2/3 step 2", "3/3 step 3"]);
    });
    it("describes the caller's side to the handler", async () => {
      const result = await client.callTool({ name: "whoami", _meta: { "dev.tenon/idempotency-key": "k1" } });
      expect(JSON.parse(textOf(result))).toMatchObject({ era: mode, client: "test", key: "k1" });
    });
    it("thins a burst of progress but never loses the last value", async () => {
      const seen: number[] = [];
      await client.callTool({ name: "slow", arguments: { steps: 400 } }, { onprogress: (p) => seen.push(p.progress) });
      expect(seen.at(-1)).toBe(400);
      expect(seen.length).toBeLessThan(200);
      expect(seen).toEqual([...seen].sort((a, b) => a - b));
    });
  });

  it("sends no progress that is not a number, and none after it that does not grow", async () => {
    const odd = shop();
    odd.tool("odd", {}, async (_, ctx) => {
      for (const done of [1, Number.NaN, Number.POSITIVE_INFINITY, 1, 0, 2]) await ctx.progress(done, 2 / (2 - done));
      return "done";
    });
    const { url: at } = await odd.listen({ port: 0 });
    const client = await connect(at, mode);
    const seen: unknown[] = [];
    await client.callTool({ name: "odd" }, { onprogress: ({ progress, total }) => seen.push([progress, total]) });
    expect(seen).toEqual([
      [1, 2],
      [2, undefined],
    ]);
    await client.close();
    await odd.close();
  });

  it("fires the signal when the client gives up", async () => {
    const client = await connect(url, mode);
    const call = client.callTool({ name: "wait" }, { signal: AbortSignal.timeout(300) });
    await expect(call).rejects.toThrow();
    await expect.poll(() => effects).toEqual(["waiting", "aborted"]);
    await client.close();
  });
});

describe("masked errors", () => {
  it("are found in the log by their reference", async () => {
    const client = await connect(url, "modern");
    const reference = /reference (\w+)/.exec(textOf(await client.callTool({ name: "leak" })))?.[1];
    expect(logged.find((entry) => entry.reference === reference)).toMatchObject({
      level: "error",
      error: { message: "password=[redacted] at /srv/app/db.ts" },
    });
    await client.close();
  });
});

describe("log messages", () => {
  it("reach a client at the level it asked for, and the server's own log in any case", async () => {
    const client = await connect(url, "modern");
    const seen: unknown[] = [];
    client.setNotificationHandler("notifications/message", (n) => void seen.push([n.params.level, n.params.data]));
    await client.callTool({ name: "slow", arguments: { steps: 1 } });
    expect(seen).toEqual([]);
    await client.callTool({
      name: "slow",
      arguments: { steps: 1 },
      _meta: { "io.modelcontextprotocol/logLevel": "info" },
    });
    expect(seen).toEqual([["info", "did 1"]]);
    expect(logged.map((entry) => entry.message)).toContain("did 1");
    await client.close();
  });
});

describe("a log message that JSON cannot carry", () => {
  it("is said in words instead of failing where nobody waits for it", async () => {
    const odd = createServer({ name: "odd", version: "1.0.0", logSink: (entry) => logged.push(entry) });
    odd.tool("t", {}, (_, ctx) => {
      void ctx.log.info({ n: 1n });
      return "ok";
    });
    const { url: at } = await odd.listen({ port: 0 });
    const client = await connect(at, "modern");
    expect(textOf(await client.callTool({ name: "t" }))).toBe("ok");
    expect(logged.map((entry) => entry.message)).toContainEqual(expect.stringContaining("log data.n is a bigint"));
    await client.close();
    await odd.close();
  });
});

describe("the HTTP side", () => {
  it("refuses a foreign Host and a foreign Origin", async () => {
    const rebound = await new Promise<number>((resolve, reject) => {
      const request = httpRequest(url, {
        method: "POST",
        headers: { host: "evil.example", "content-type": "application/json" },
      });
      request.on("response", (response) => resolve(response.statusCode ?? 0)).on("error", reject);
      request.end("{}");
    });
    expect(rebound).toBe(403);
    const crossed = await fetch(url, {
      method: "POST",
      headers: { origin: "https://evil.example", "content-type": "application/json" },
      body: "{}",
    });
    expect(crossed.status).toBe(403);
  });
  it("answers bad requests with the protocol's codes, not with a trace", async () => {
    const post = (body: string, type = "application/json"): Promise<Response> =>
      fetch(url, {
        method: "POST",
        headers: { "content-type": type, accept: "application/json, text/event-stream" },
        body,
      });
    expect((await post("{}", "text/plain")).status).toBe(415);
    expect(await (await post("{nope")).json()).toMatchObject({ error: { code: -32700 } });
    expect((await post(`"${"x".repeat(5 * 1024 * 1024)}"`)).status).toBe(413);
    expect((await post("[".repeat(100_000))).status).toBe(400);
    expect((await fetch(url)).status).toBe(405);
    expect((await fetch(url, { method: "DELETE", headers: { "mcp-session-id": "nope" } })).status).toBe(404);
    expect((await fetch(new URL("/other", url))).status).toBe(404);
    const unknown = await overSocket(url, modern("tools/nope"));
    expect(unknown).toMatchObject({ status: 404, messages: [{ error: { code: -32601 } }] });
  });
  it("says which port is taken", async () => {
    const other = shop();
    await expect(other.listen({ port: Number(new URL(url).port) })).rejects.toMatchObject({
      code: "port_in_use",
      message: expect.stringContaining("choose another port"),
    });
    await other.close();
  });
  it("will not listen on every address without allowed hosts", async () => {
    await expect(shop().listen({ port: 0, host: "0.0.0.0" })).rejects.toMatchObject({ code: "allowed_hosts" });
  });
  it("keeps at most the allowed number of legacy sessions", async () => {
    const small = shop({ http: { sessions: { max: 2 } } });
    const { url: at } = await small.listen({ port: 0 });
    const clients = [await connect(at, "legacy"), await connect(at, "legacy"), await connect(at, "legacy")];
    await expect(clients[0]?.listTools()).rejects.toThrow();
    expect((await clients[2]?.listTools())?.tools.length).toBeGreaterThan(0);
    await Promise.all(clients.map((client) => client.close()));
    await small.close();
  });
  it("writes no error to its log when a handler stops because its client left", async () => {
    const levels: string[] = [];
    const quiet = shop({ logSink: ({ level }) => levels.push(level) });
    quiet.tool("stops", {}, (_, ctx) => once(ctx.signal, "abort").then(() => ctx.signal.throwIfAborted()));
    const leaving = new AbortController();
    const gone = callTool(quiet, "stops", {}, { signal: leaving.signal }).catch(() => undefined);
    setTimeout(() => leaving.abort(), 100);
    await gone;
    await expect.poll(() => levels).toEqual(["info"]);
    await quiet.close();
  });
  it("opens the lifespan with a later request when it failed for the first one", async () => {
    let tries = 0;
    const late = createServer({
      name: "late",
      version: "1.0.0",
      logSink: () => undefined,
      lifespan: async () => {
        tries += 1;
        if (tries === 1) throw new Error("the database still starts");
        return { value: tries };
      },
    });
    late.tool("n", {}, (_, ctx) => ctx.lifespan);
    expect((await callTool(late, "n")).error?.message).toMatch(/^n failed \(reference \w+\)$/);
    expect(said(await callTool(late, "n"))).toBe("2");
    expect(said(await callTool(late, "n"))).toBe("2");
    await late.close();
  });
  it("opens and closes the lifespan once", async () => {
    const events: string[] = [];
    const alive = createServer({
      name: "alive",
      version: "1.0.0",
      lifespan: async () => {
        events.push("open");
        return { value: { n: 7 }, close: () => void events.push("close") };
      },
    });
    alive.tool("n", {}, (_, ctx) => ctx.lifespan.n);
    const { url: at } = await alive.listen({ port: 0 });
    const client = await connect(at, "modern");
    expect(textOf(await client.callTool({ name: "n" }))).toBe("7");
    await client.close();
    await alive.close();
    await alive.close();
    expect(events).toEqual(["open", "close"]);
  });
});

describe("a server that keeps no sessions", () => {
  it("answers clients of the older revision request by request, and refuses to ask them", async () => {
    const server = shop({ http: { sessions: false } });
    const { url } = await server.listen({ port: 0 });
    const client = await connect(url, "legacy", { capabilities: { elicitation: { form: {} } } });
    client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { value: "yes" } }));
    const ask = async (name: string, args: Record<string, unknown>) =>
      JSON.stringify(await client.callTool({ name, arguments: args }));
    expect(await ask("add", { a: 1, b: 2 })).toContain('"text":"3"');
    expect(await ask("buy", { item: "tea" })).toMatch(/needs a client that can show a form.*"isError":true/);
    await client.close();
    await server.close();
  });
});

describe("stdio", () => {
  let client: Client | undefined;
  afterEach(() => client?.close());
  it("survives console.log in user code", async () => {
    client = await spawn(stdioServer, "modern");
    expect(textOf(await client.callTool({ name: "noisy" }))).toBe("ok");
    expect(textOf(await client.callTool({ name: "add", arguments: { a: 1, b: 1 } }))).toBe("2");
  });
});
