import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { TenonServer } from "../src/index.ts";
import { type Answer, initialize, legacy, modern, overFetch, overSocket, type Raw, sessionOf } from "./raw-requests.ts";
import { connect, type Mode, shop } from "./servers.ts";
import { spawn } from "./spawned.ts";

const stdioServer = fileURLToPath(new URL("./stdio-server.ts", import.meta.url));
let server: TenonServer;
let url: string;
beforeAll(async () => {
  server = shop({ pageSize: 4, http: { sessions: { idleTimeoutMs: 60_000 } } });
  server.prompt(
    "city",
    {
      input: z.object({ country: z.string(), name: z.string() }),
      complete: {
        country: (typed) => ["france", "finland"].filter((name) => name.startsWith(typed)),
        name: (_typed, ctx) => (ctx.arguments.country === "france" ? ["paris"] : []),
      },
    },
    ({ name }) => name,
  );
  server.resource(
    "log://{day}",
    { complete: { day: () => Array.from({ length: 150 }, (_, i) => `d${i}`) } },
    () => "x",
  );
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());

/** Opens a stream and hands over its events one by one. */
async function openStream(
  raw: Raw,
): Promise<{ response: Response; next(): Promise<Record<string, never> & { id?: string }>; close(): void }> {
  const leaving = new AbortController();
  const response = await fetch(url, {
    method: raw.method ?? "POST",
    headers: raw.headers ?? {},
    ...(raw.body !== undefined && { body: raw.body }),
    signal: leaving.signal,
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return {
    response,
    close: () => leaving.abort(),
    async next() {
      for (;;) {
        const end = text.indexOf("\n\n");
        if (end >= 0) {
          const event = text.slice(0, end);
          text = text.slice(end + 2);
          const data = /^data: (.+)$/m.exec(event)?.[1];
          const eventId = /^id: (.+)$/m.exec(event)?.[1];
          if (data) return { ...JSON.parse(data), ...(eventId && { eventId }) };
          continue;
        }
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done) throw new Error(`the stream ended after: ${text}`);
        text += value;
      }
    },
  };
}

async function openSession(capabilities = {}): Promise<Record<string, string>> {
  const session = sessionOf(await overSocket(url, initialize(capabilities)));
  await overSocket(url, legacy("notifications/initialized", {}, { headers: session, message: { id: undefined } }));
  return session;
}

describe("subscriptions/listen", () => {
  it("acknowledges what it honours, tags every change and tells nothing else", async () => {
    const notifications = { toolsListChanged: true, resourceSubscriptions: ["news://a"] };
    const stream = await openStream(modern("subscriptions/listen", { notifications }, { message: { id: "s" } }));
    expect(await stream.next()).toMatchObject({
      method: "notifications/subscriptions/acknowledged",
      params: { notifications },
    });
    server.notify.promptsChanged();
    server.notify.resourceUpdated("news://b");
    server.notify.toolsChanged();
    server.notify.toolsChanged();
    server.notify.resourceUpdated("news://a");
    const tag = { _meta: { "io.modelcontextprotocol/subscriptionId": "s" } };
    expect(await stream.next()).toMatchObject({ method: "notifications/tools/list_changed", params: tag });
    expect(await stream.next()).toMatchObject({
      method: "notifications/resources/updated",
      params: { uri: "news://a", ...tag },
    });
    stream.close();
  });
  it.each([
    ["resources", Array.from({ length: 1_001 }, (_, i) => `news://${i}`)],
    ["characters", Array.from({ length: 100 }, (_, i) => `news://${i}/${"x".repeat(1_000)}`)],
  ])(
    "watches only so many %s, and so does a legacy session",
    async (_what, resourceSubscriptions) => {
      const refused = { code: -32602, message: expect.stringContaining("resources") };
      const listening = modern("subscriptions/listen", { notifications: { resourceSubscriptions } });
      const [answer] = (await overSocket(url, listening)).messages;
      expect(answer).toMatchObject({ error: { ...refused, message: expect.stringContaining("at most 1000") } });
      const session = await openSession();
      const watch = async (uri: string): Promise<unknown> =>
        (await overSocket(url, legacy("resources/subscribe", { uri }, { headers: session }))).messages[0];
      const answers = [];
      const last = resourceSubscriptions.length - 1;
      for (let at = 0; at < last; at += 50)
        answers.push(...(await Promise.all(resourceSubscriptions.slice(at, Math.min(at + 50, last)).map(watch))));
      answers.push(await watch(resourceSubscriptions[last] ?? ""));
      expect(answers[0]).toMatchObject({ result: {} });
      expect(answers.at(-1)).toMatchObject({ error: refused });
      await overSocket(
        url,
        legacy("resources/unsubscribe", { uri: resourceSubscriptions[0] ?? "" }, { headers: session }),
      );
      expect(await watch(resourceSubscriptions.at(-1) ?? "")).toMatchObject({ result: {} });
    },
    60_000,
  );
  it.each(["modern", "legacy"] as const)("reaches a client on stdio too, %s", async (mode: Mode) => {
    const client = await spawn(stdioServer, mode);
    const changed = new Promise<void>((resolve) =>
      client.setNotificationHandler("notifications/tools/list_changed", () => resolve()),
    );
    if (mode === "modern") await client.listen({ toolsListChanged: true });
    await client.callTool({ name: "grow" });
    await changed;
    await client.close();
  });
});

describe("a legacy session", () => {
  it("hears of changes on its stream, of resources only those it subscribed to", async () => {
    const session = await openSession();
    const stream = await openStream({
      method: "GET",
      headers: { accept: "text/event-stream", "mcp-protocol-version": "2025-11-25", ...session },
    });
    await overSocket(url, legacy("resources/subscribe", { uri: "news://a" }, { headers: session }));
    await overSocket(url, legacy("resources/subscribe", { uri: "news://b" }, { headers: session }));
    await overSocket(url, legacy("resources/unsubscribe", { uri: "news://b" }, { headers: session }));
    server.notify.resourceUpdated("news://b");
    server.notify.resourceUpdated("news://a");
    server.notify.promptsChanged();
    expect(await stream.next()).toMatchObject({
      method: "notifications/resources/updated",
      params: { uri: "news://a" },
    });
    expect(await stream.next()).toMatchObject({ method: "notifications/prompts/list_changed" });
    stream.close();
  });
  it("resumes where its stream broke", async () => {
    const session = await openSession();
    const get = { accept: "text/event-stream", "mcp-protocol-version": "2025-11-25", ...session };
    const stream = await openStream({ method: "GET", headers: get });
    server.notify.toolsChanged();
    const seen = (await stream.next()) as { eventId?: string };
    stream.close();
    await new Promise((resolve) => setTimeout(resolve, 100));
    server.notify.promptsChanged();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const again = await openStream({ method: "GET", headers: { ...get, "last-event-id": seen.eventId ?? "" } });
    expect(await again.next()).toMatchObject({ method: "notifications/prompts/list_changed" });
    again.close();
    const lost = await overSocket(url, { method: "GET", headers: { ...get, "last-event-id": "999999" } });
    expect(lost.status).toBe(400);
  });
  it("keeps the level its client set, and answers pings and lists beside running calls", async () => {
    const session = await openSession();
    const send = (raw: (headers: object) => Raw): Promise<unknown> =>
      overSocket(url, raw(session)).then(({ messages }) => messages);
    const headers = session;
    expect(await send(() => legacy("logging/setLevel", { level: "error" }, { headers }))).toMatchObject([
      { result: {} },
    ]);
    expect(await send(() => legacy("tools/call", { name: "slow", arguments: { steps: 2 } }, { headers }))).toHaveLength(
      1,
    );
    expect(await send(() => legacy("ping", {}, { headers }))).toMatchObject([{ result: {} }]);
    const { headers: answered, messages } = await overSocket(url, legacy("tools/list", {}, { headers }));
    expect(answered["content-type"]).toBe("application/json");
    expect(messages).toMatchObject([{ result: { tools: { length: 4 } } }]);
  });
  it("ends by DELETE, and is then unknown", async () => {
    const headers = await openSession();
    const end = { method: "DELETE", headers: { "mcp-protocol-version": "2025-11-25", ...headers } };
    expect((await overSocket(url, end)).status).toBe(200);
    expect((await overSocket(url, legacy("tools/list", {}, { headers }))).status).toBe(404);
  });
  it("belongs to who opened it", async () => {
    const alice = { subject: "alice", scopes: [], claims: {} };
    const ask = (raw: Raw, caller: typeof alice): Promise<Answer> => overFetch(server, raw, { caller });
    const list = legacy("tools/list", {}, { headers: sessionOf(await ask(initialize(), alice)) });
    expect((await ask(list, alice)).status).toBe(200);
    expect((await ask(list, { ...alice, subject: "mallory" })).status).toBe(404);
    expect((await overSocket(url, list)).status).toBe(404);
  });
  it("is never one of more than allowed, however many clients open one at once", async () => {
    const small = shop({ http: { sessions: { max: 3 } } });
    const send = (raw: Raw): Promise<Answer> => overFetch(small, raw);
    const opened = await Promise.all(Array.from({ length: 20 }, () => send(initialize())));
    const statuses = await Promise.all(
      opened.map(async (answer) => (await send(legacy("ping", {}, { headers: sessionOf(answer) }))).status),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(3);
    await small.close();
  });
  it("is closed when nobody uses it", async () => {
    // longer than a busy machine takes to open one, shorter than the pause between two looks
    const hasty = shop({ http: { sessions: { idleTimeoutMs: 700 } } });
    const { url: at } = await hasty.listen({ port: 0 });
    const client = await connect(at, "legacy");
    const session = { "mcp-session-id": (client.transport as { sessionId?: string }).sessionId ?? "" };
    await client.transport?.close();
    await expect
      .poll(async () => (await overSocket(at, legacy("ping", {}, { headers: session }))).status, {
        interval: 1_800,
        timeout: 15_000,
      })
      .toBe(404);
    await hasty.close();
  });
});

describe.each(["modern", "legacy"] as const)("on the %s era", (mode: Mode) => {
  it("long lists come in pages that fit together", async () => {
    const client = await connect(url, mode);
    const { tools } = await client.listTools();
    expect(tools.length).toBeGreaterThan(8);
    expect(new Set(tools.map((tool) => tool.name)).size).toBe(tools.length);
    await client.close();
  });
  it("suggests values for arguments", async () => {
    const client = await connect(url, mode);
    const ref = { type: "ref/prompt", name: "city" } as const;
    const suggest = async (name: string, value: string, more = {}): Promise<unknown> =>
      (await client.complete({ ref, argument: { name, value }, ...more })).completion;
    expect(await suggest("country", "fr")).toEqual({ values: ["france"], total: 1, hasMore: false });
    expect(await suggest("name", "", { context: { arguments: { country: "france" } } })).toMatchObject({
      values: ["paris"],
    });
    expect(await suggest("other", "")).toMatchObject({ values: [] });
    const days = await client.complete({
      ref: { type: "ref/resource", uri: "log://{day}" },
      argument: { name: "day", value: "" },
    });
    expect(days.completion).toMatchObject({ values: { length: 100 }, total: 150, hasMore: true });
    await expect(
      client.complete({ ref: { ...ref, name: "none" }, argument: { name: "a", value: "" } }),
    ).rejects.toMatchObject({
      code: -32602,
    });
    await client.close();
  });
});

describe("cache hints", () => {
  const hintsOf = async (at: string, method: string, params = {}): Promise<unknown> => {
    const { messages } = await overSocket(at, modern(method, params));
    const [{ result }] = messages as [{ result: { ttlMs: number; cacheScope: string } }];
    return [result.ttlMs, result.cacheScope];
  };
  it("keep lists for a minute and resources not at all, for the caller alone", async () => {
    for (const method of [
      "tools/list",
      "prompts/list",
      "resources/list",
      "resources/templates/list",
      "server/discover",
    ]) {
      expect(await hintsOf(url, method)).toEqual([60_000, "private"]);
    }
    expect(await hintsOf(url, "resources/read", { uri: "company://policies/return" })).toEqual([0, "private"]);
  });
  it("follow the options, the nearest first", async () => {
    const own = shop({ cache: { ttlMs: 7, scope: "public", "prompts/list": { ttlMs: 0 } } });
    own.resource("a://b", { cache: { ttlMs: 9 } }, () => "x");
    const { url: at } = await own.listen({ port: 0 });
    expect(await hintsOf(at, "tools/list")).toEqual([7, "public"]);
    expect(await hintsOf(at, "prompts/list")).toEqual([0, "public"]);
    expect(await hintsOf(at, "resources/read", { uri: "a://b" })).toEqual([9, "public"]);
    await own.close();
    expect(() => shop({ cache: { ttlMs: -1 } })).toThrow("whole milliseconds");
    expect(() => shop({ cache: { "tools/lists": {} } as never })).toThrow('did you mean "tools/list"');
  });
});
