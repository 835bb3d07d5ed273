import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { openMemory, type Stores } from "@tenon/store";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { program } from "../../../test/programs.ts";
import { createServer, type TenonServer } from "../src/index.ts";
import { value } from "./ask.ts";
import { META, modern, overSocket, type Raw } from "./raw-requests.ts";
import { ABLE, answer, asks, begin, caller, ended, follow, request, TASKS, type WireTask } from "./tasks.ts";

interface Message {
  id?: unknown;
  method?: string;
  params?: Partial<WireTask> & { notifications?: Record<string, unknown>; uri?: string };
  result?: { resultType?: string; taskId?: string };
  error?: { code: number };
}
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const able = { meta: { [META.capabilities]: ABLE } };
const listen = (notifications: object, more: { meta?: object } = able): Raw =>
  modern("subscriptions/listen", { notifications }, { ...more, message: { id: "s" } });

const entry = await program("./tasks-stdio.ts", import.meta.url);
let stores: Stores;
let server: TenonServer;
let url: string;
beforeAll(async () => {
  stores = openMemory();
  server = createServer({ name: "listen", version: "1.0.0", store: stores, logSink: () => undefined });
  server.resource("news://a", {}, () => "a");
  server.tool("ask", { task: "optional" }, async (_, ctx) => {
    const sure = await ctx.elicit("Sure?", z.boolean());
    await ctx.progress(1, 2, "half");
    return sure.action;
  });
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(async () => {
  await server.close();
  await stores.close();
});

/** Reads the messages of a stream one by one. */
async function open(raw: Raw): Promise<{ next(): Promise<Message>; close(): void }> {
  const leaving = new AbortController();
  const response = await fetch(url, {
    method: "POST",
    headers: raw.headers ?? {},
    body: String(raw.body),
    signal: leaving.signal,
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  onTestFinished(() => leaving.abort());
  let text = "";
  return {
    close: () => leaving.abort(),
    async next() {
      for (;;) {
        const end = text.indexOf("\n\n");
        if (end >= 0) {
          const data = /^data: (.+)$/m.exec(text.slice(0, end))?.[1];
          text = text.slice(end + 2);
          if (data) return JSON.parse(data);
          continue;
        }
        const { done, value: chunk } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done) throw new Error(`the stream ended after: ${text}`);
        text += chunk;
      }
    },
  };
}

/** What a listener hears of a task until it has ended. */
async function untilEnd(next: () => Promise<Message>): Promise<Message[]> {
  const heard: Message[] = [];
  for (;;) {
    const message = await next();
    heard.push(message);
    if (message.method === "notifications/tasks" && ended(message.params as WireTask)) return heard;
  }
}

describe("subscriptions/listen with taskIds over HTTP", () => {
  it("tells of a task as it is and of every change, until it has ended", async () => {
    const { taskId } = await begin(server, "ask");
    await follow(server, taskId, asks);
    const stream = await open(listen({ taskIds: [taskId, taskId] }));
    expect(await stream.next()).toMatchObject({
      method: "notifications/subscriptions/acknowledged",
      params: { notifications: { taskIds: [taskId] }, _meta: { [SUBSCRIPTION]: "s" } },
    });
    const first = await stream.next();
    expect(first).toMatchObject({
      method: "notifications/tasks",
      params: { taskId, status: "input_required", _meta: { [SUBSCRIPTION]: "s" } },
    });
    await answer(server, first.params as WireTask, { "Sure?": value(true) });
    const heard = await untilEnd(stream.next);
    expect(heard.at(-1)?.params).toMatchObject({
      status: "completed",
      result: { resultType: "complete", content: [{ text: "accept" }] },
      _meta: { [SUBSCRIPTION]: "s", "dev.tenon/progress": { progress: 1, total: 2, message: "half" } },
    });
  });

  it("works beside other subscriptions", async () => {
    const { taskId } = await begin(server, "ask");
    const stream = await open(listen({ taskIds: [taskId], resourceSubscriptions: ["news://a"] }));
    expect((await stream.next()).params?.notifications).toEqual({
      taskIds: [taskId],
      resourceSubscriptions: ["news://a"],
    });
    const heard: Message[] = [];
    while (!heard.some(({ params }) => params?.status === "input_required")) heard.push(await stream.next());
    server.notify.resourceUpdated("news://a");
    while (!heard.some(({ params }) => params?.uri === "news://a")) heard.push(await stream.next());
    await request(server, "tasks/cancel", { taskId });
    expect((await untilEnd(stream.next)).at(-1)?.params?.status).toBe("cancelled");
    stream.close();
  });

  it("acknowledges only what exists and belongs to the caller; of nothing at all it ends at once", async () => {
    const { taskId } = await begin(server, "ask", {}, { caller: caller("ann") });
    const { messages } = await overSocket(url, listen({ taskIds: [taskId, `task_${"A".repeat(32)}`, "x"] }));
    expect(messages).toMatchObject([
      { method: "notifications/subscriptions/acknowledged", params: { notifications: {} } },
      { id: "s", result: { resultType: "complete" } },
    ]);
  });

  it("is refused without the capability, and for more tasks than it may follow", async () => {
    const refused = await overSocket(url, listen({ taskIds: ["x"] }, {}));
    expect(refused).toMatchObject({
      status: 400,
      messages: [
        { id: "s", error: { code: -32_021, data: { requiredCapabilities: { extensions: { [TASKS]: {} } } } } },
      ],
    });
    for (const taskIds of [Array(101).fill("x"), "x", [7]]) {
      expect(await overSocket(url, listen({ taskIds }))).toMatchObject({ messages: [{ error: { code: -32_602 } }] });
    }
  });

  it("keeps little for a listener that does not read, and loses no end", async () => {
    const large = createServer({ name: "large", version: "1.0.0", logSink: () => undefined });
    large.tool("long", { task: "optional" }, () => "x".repeat(700_000));
    const taskIds = await Promise.all([1, 2, 3].map(async () => (await begin(large, "long")).taskId));
    for (const id of taskIds) await follow(large, id);
    const raw = listen({ taskIds });
    const { body } = await large.fetch(
      new Request("http://127.0.0.1/mcp", { method: "POST", headers: raw.headers ?? {}, body: String(raw.body) }),
    );
    const reader = (body ?? expect.fail("no stream")).pipeThrough(new TextDecoderStream()).getReader();
    await sleep(300); // nobody reads
    let text = "";
    const read = async (): Promise<void> => {
      while (text.split('"completed"').length <= 3) text += (await reader.read()).value;
    };
    const all = read();
    await sleep(500);
    expect(text.split('"completed"')).toHaveLength(3); // two of them fit
    await all; // the third is looked at again
    await reader.cancel();
    await large.close();
  }, 20_000);

  it("is bounded also where many are opened at once", async () => {
    const flooded = createServer({ name: "flooded", version: "1.0.0", logSink: () => undefined });
    flooded.tool("ask", { task: "optional" }, (_, ctx) =>
      ctx.elicit("Sure?", z.boolean()).then(({ action }) => action),
    );
    const { taskId } = await begin(flooded, "ask");
    const raw = listen({ taskIds: [taskId] });
    const responses = await Promise.all(
      Array.from({ length: 1_100 }, () =>
        flooded.fetch(
          new Request("http://127.0.0.1/mcp", { method: "POST", headers: raw.headers ?? {}, body: String(raw.body) }),
        ),
      ),
    );
    const streams = responses.filter(({ headers }) => headers.get("content-type")?.startsWith("text/event-stream"));
    expect(streams).toHaveLength(1_024);
    await streams[0]?.body?.cancel();
    const more = new Request("http://127.0.0.1/mcp", {
      method: "POST",
      headers: raw.headers ?? {},
      body: String(raw.body),
    });
    expect((await flooded.fetch(more)).headers.get("content-type")).toContain("text/event-stream");
    await flooded.close();
  });

  it("ends with the server", async () => {
    const own = createServer({ name: "own", version: "1.0.0", logSink: () => undefined }).tool(
      "wait",
      { task: "optional" },
      (_, ctx) => ctx.elicit("Sure?", z.boolean()),
    );
    const { taskId } = await begin(own, "wait");
    const raw = listen({ taskIds: [taskId] });
    const response = await own.fetch(
      new Request("http://127.0.0.1/mcp", { method: "POST", headers: raw.headers ?? {}, body: String(raw.body) }),
    );
    const whole = response.text();
    await follow(own, taskId, asks);
    await own.close();
    expect(await whole).toMatch(/"id":"s","result":\{"resultType":"complete"/);
  });

  it("hears of changes that another process made, also where no word of them comes", async () => {
    // two stores on one set of tasks, of which the second hears nothing
    const deaf: Stores = { ...stores, tasks: { ...stores.tasks, onChange: () => () => undefined } };
    const other = createServer({ name: "listen", version: "1.0.0", store: deaf, tasks: { concurrency: 0 } });
    other.tool("ask", { task: "optional" }, () => "never run here");
    onTestFinished(() => other.close());
    const { taskId } = await begin(server, "ask");
    await follow(server, taskId, asks);
    const raw = listen({ taskIds: [taskId] });
    const { port } = await other.listen({ port: 0 });
    const before = url;
    url = `http://127.0.0.1:${port}/mcp`;
    const stream = await open(raw);
    url = before;
    await stream.next();
    expect((await stream.next()).params?.status).toBe("input_required");
    await request(server, "tasks/cancel", { taskId });
    expect((await stream.next()).params?.status).toBe("cancelled");
  }, 15_000);
});

describe("subscriptions/listen with taskIds over stdio", () => {
  it("works alone and beside others, is refused without the capability, and stops when it is taken back", async () => {
    const child = spawn(process.execPath, [entry], { stdio: ["pipe", "pipe", "inherit"] });
    onTestFinished(() => void child.kill());
    const heard: Message[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => heard.push(JSON.parse(line)));
    const send = (method: string, params: object, id?: unknown, capabilities: object = ABLE): void => {
      const raw = modern(method, params as Record<string, unknown>, {
        meta: { [META.capabilities]: capabilities },
        message: { id },
      });
      child.stdin.write(`${raw.body}\n`);
    };
    const until = async (fits: (message: Message) => boolean): Promise<Message> => {
      for (const late = Date.now() + 10_000; ; ) {
        const found = heard.find(fits);
        if (found) return found;
        if (Date.now() > late) throw new Error(JSON.stringify(heard));
        await sleep(10);
      }
    };
    send("tools/call", { name: "ask", arguments: {} }, 1);
    const taskId = (await until(({ id }) => id === 1)).result?.taskId;
    send("subscriptions/listen", { notifications: { taskIds: [taskId] } }, "no", {});
    expect(await until(({ id }) => id === "no")).toMatchObject({ error: { code: -32_021 } });
    send("subscriptions/listen", { notifications: { taskIds: [taskId, "x"] } }, "s");
    const acknowledged = await until(({ method }) => method === "notifications/subscriptions/acknowledged");
    expect(acknowledged.params).toMatchObject({
      notifications: { taskIds: [taskId] },
      _meta: { [SUBSCRIPTION]: "s" },
    });
    const open = await until(({ params }) => params?.status === "input_required");
    expect(open.params?._meta).toMatchObject({ [SUBSCRIPTION]: "s" });
    send("subscriptions/listen", { notifications: { taskIds: [taskId], toolsListChanged: true } }, "t");
    await until(({ params }) => params?._meta?.[SUBSCRIPTION] === "t" && params.status === "input_required");
    child.stdin.write(
      `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "s" } })}\n`,
    );
    send("tools/call", { name: "grow", arguments: {} }, 2);
    await until(({ method }) => method === "notifications/tools/list_changed");
    const [[key = ""] = []] = Object.entries(open.params?.inputRequests ?? {});
    send("tasks/update", { taskId, inputResponses: { [key]: value(true) } }, 3);
    const done = await until(({ params }) => params?.status === "completed");
    expect(done.params).toMatchObject({ taskId, result: { content: [{ text: "accept" }] } });
    await sleep(50);
    const ofFirst = heard.filter(({ params }) => params?._meta?.[SUBSCRIPTION] === "s");
    expect(ofFirst.some(({ params }) => params?.status === "completed")).toBe(false);
    send("tasks/get", { taskId }, 4);
    expect(await until(({ id }) => id === 4)).toMatchObject({ result: { taskId, status: "completed" } });
    child.stdin.end();
    expect(await until(({ id }) => id === "t")).toMatchObject({ result: { resultType: "complete" } });
  });
});
