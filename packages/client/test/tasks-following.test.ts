import { rmSync } from "node:fs";
import { type ConnectionError, ExecutionError, META, ProtocolError } from "@tenon/core";
import { describe, expect, it } from "vitest";
import { type Interceptor, type ProgressEvent, renderText, type ToolCallOutcome } from "../src/index.ts";
import { type AuditIntent, type AuditOutcome, audit, retry, timeout } from "../src/interceptors/index.ts";
import { closeAfterEach, connect, start, stubHttp } from "./stub/index.ts";
import { taskServers } from "./tasks-scene.ts";

closeAfterEach();
const scene = taskServers();

const said = (outcome: ToolCallOutcome) => JSON.parse(renderText(outcome.content)) as Record<string, unknown>;
const s = () => ({ s: { url: scene.url } });

describe("a call that becomes a task", () => {
  it("is followed to its end, with progress on the way", async () => {
    const client = connect(s());
    const heard: [ProgressEvent, unknown][] = [];
    const outcome = await client.callTool(
      "s",
      "work",
      { label: "books", ms: 500, counts: true },
      { onProgress: (event, source) => heard.push([event, source]) },
    );
    expect(said(outcome)).toEqual({ done: "books", answers: {} });
    expect(heard.length).toBeGreaterThan(1);
    expect(heard[0]?.[0]).toMatchObject({ total: 500, message: "counting", percent: expect.any(Number) });
    expect(heard[0]?.[1]).toEqual({
      server: "s",
      tool: "work",
      callId: expect.stringMatching(/^call-/),
      taskId: expect.any(String),
    });
    const numbers = heard.map(([{ progress }]) => progress);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(scene.count("tools/call")).toBe(1);
  });

  it("says what it is doing where it does not count", async () => {
    const heard: ProgressEvent[] = [];
    const client = connect(s(), { events: { onProgress: (event) => heard.push(event) } });
    await client.callTool("s", "work", { ms: 600, says: "page" });
    expect(heard.length).toBeGreaterThan(1);
    expect(heard[0]).toEqual({ progress: 1, message: expect.stringMatching(/^page \d$/) });
    expect(new Set(heard.map(({ message }) => message)).size).toBe(heard.length);
  });

  it("may take longer than one request may", async () => {
    const client = connect(s());
    const outcome = await client.callTool("s", "work", { ms: 900 }, { timeoutMs: 400, totalTimeoutMs: 500 });
    expect(outcome.isError).toBe(false);
  });

  it("is looked at as often as its server wants, not oftener", async () => {
    const client = connect(s());
    await client.callTool("s", "work", { ms: 1_000, pollIntervalMs: 400 });
    // soon, then at least every 320 ms
    expect(scene.count("tasks/get")).toBeLessThanOrEqual(5);
    expect(scene.count("tasks/get")).toBeGreaterThan(1);
  });

  it("gives the tool's own error as any call does", async () => {
    const client = connect(s());
    expect(await client.callTool("s", "work", { toolError: true })).toMatchObject({ isError: true });
    const throwing = connect(s(), { toolErrors: "throw" });
    await expect(throwing.callTool("s", "work", { toolError: true })).rejects.toBeInstanceOf(ExecutionError);
  });

  it("has its result checked by the tool's schema", async () => {
    const client = connect(s());
    await client.listTools();
    expect(await client.callTool("s", "counted", { structured: { n: 1 } })).toMatchObject({ structured: { n: 1 } });
    const wrong = await client.callTool("s", "counted", { structured: { n: "many" } });
    expect(wrong).toMatchObject({ isError: true, problem: { code: "invalid_output" } });
  });

  it("that fails is the error its server gave", async () => {
    const client = connect(s());
    const failed = client.callTool("s", "work", { fail: true });
    await expect(failed).rejects.toBeInstanceOf(ProtocolError);
    await expect(failed).rejects.toMatchObject({
      code: "rpc_error",
      server: "s",
      maybeExecuted: true,
      retryable: false,
      data: { code: -32_603, data: { disk: 1 }, taskId: expect.any(String) },
      message: expect.stringContaining("the disk is full"),
    });
  });

  it("that wants to ask where nobody can be asked says what to set, as a call does", async () => {
    const failed = connect(s()).callTool("s", "work", { fail: "capability" });
    await expect(failed).rejects.toMatchObject({
      message: expect.stringMatching(/This needs somebody to ask \(JSON-RPC -32021\) .* set `elicitation`/),
    });
  });

  it("that somebody else cancels is an error of its own", async () => {
    const client = connect(s());
    const call = client.callTool("s", "work", { ms: 5_000 });
    await scene.until(() => scene.count("tasks/get") > 0);
    const [id = ""] = Object.keys(scene.kept().tasks);
    await connect(s()).tasks.cancel("s", id);
    await expect(call).rejects.toMatchObject({ code: "task_cancelled", maybeExecuted: true, data: { taskId: id } });
  });

  it("that its server lost is an error that says so", async () => {
    const client = connect(s());
    const call = client.callTool("s", "work", { ms: 5_000 });
    await scene.until(() => scene.count("tasks/get") > 0);
    rmSync(scene.file);
    await expect(call).rejects.toMatchObject({ code: "task_gone", maybeExecuted: true, retryable: false });
  });

  it("is cancelled when its caller does not want it any more", async () => {
    const client = connect(s());
    const unwanted = new AbortController();
    const call = client.callTool("s", "work", { ms: 5_000 }, { signal: unwanted.signal });
    await scene.until(() => scene.count("tasks/get") > 0);
    unwanted.abort();
    await expect(call).rejects.toMatchObject({ code: "cancelled", maybeExecuted: true });
    expect(scene.count("tasks/cancel")).toBe(1);
  });

  it("goes on when the client is closed", async () => {
    const client = connect(s());
    const call = client.callTool("s", "work", { ms: 600 });
    const closed = expect(call).rejects.toMatchObject({ code: "closed", data: { taskId: expect.any(String) } });
    await scene.until(() => scene.count("tasks/get") > 0);
    await client.close();
    await closed;
    const [id = ""] = Object.keys(scene.kept().tasks);
    expect(scene.count("tasks/cancel")).toBe(0);
    expect(said(await connect(s()).tasks.resume("s", id))).toMatchObject({ done: "work" });
  });

  it("is not followed longer than was said, and can be followed again", async () => {
    const client = connect(s());
    const call = client.callTool("s", "work", { ms: 900 }, { task: { totalMs: 300 } });
    const error: unknown = await call.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "timeout", retryable: false, data: { ms: 300, taskId: expect.any(String) } });
    expect(scene.count("tasks/cancel")).toBe(0);
    const { taskId } = (error as ConnectionError).data as { taskId: string };
    expect(said(await client.tasks.resume("s", taskId))).toMatchObject({ done: "work" });
    expect(scene.count("tools/call")).toBe(1);
  });

  it("is followed as its client says, unless the call says otherwise", async () => {
    const client = connect(s(), { task: { totalMs: 300 } });
    await expect(client.callTool("s", "work", { ms: 800 })).rejects.toMatchObject({
      code: "timeout",
      data: { ms: 300 },
    });
    expect(await client.callTool("s", "work", { ms: 800 }, { task: { totalMs: 5_000 } })).toMatchObject({
      isError: false,
    });
    expect(() => connect(s(), { task: { totalMS: 1 } as object })).toThrow("totalMs");
  });

  it("is waited for while its server is away", async () => {
    const client = connect(s());
    const call = client.callTool("s", "work", { ms: 900, label: "later" });
    await scene.until(() => scene.count("tasks/get") > 0);
    await scene.restart(700);
    expect(said(await call)).toMatchObject({ done: "later" });
    expect(scene.count("tools/call")).toBe(1);
  });

  it("is given up when its server stays away, with the id to follow it later", async () => {
    const client = connect(s());
    const call = client.callTool("s", "work", { ms: 900 }, { task: { outageMs: 400 } });
    const failed = expect(call).rejects.toMatchObject({
      code: "unreachable",
      retryable: false,
      maybeExecuted: true,
      data: { taskId: expect.any(String) },
    });
    await scene.until(() => scene.count("tasks/get") > 0);
    await scene.restart(1_500);
    await failed;
    const [id = ""] = Object.keys(scene.kept().tasks);
    expect(said(await client.tasks.resume("s", id))).toMatchObject({ done: "work" });
  });

  it("survives answers of a server in trouble", async () => {
    let looks = 0;
    const task = {
      taskId: "t1",
      status: "working",
      ttlMs: null,
      createdAt: "",
      lastUpdatedAt: "",
      pollIntervalMs: 100,
    };
    const stub = await start(
      stubHttp({
        capabilities: { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
        onCall: () => ({ resultType: "task", ...task }),
        on: {
          "tasks/get": (_, reply) => {
            looks += 1;
            if (looks === 1) return reply.http(503, {}, "deploying");
            if (looks === 2) return reply.error(-32_603, "the database is away");
            if (looks === 3) return reply.die();
            return { ...task, status: "completed", result: { content: [{ type: "text", text: "here" }] } };
          },
        },
      }),
    );
    const client = connect({ s: stub.config });
    expect(renderText((await client.callTool("s", "t")).content)).toBe("here");
    expect(stub.count("tools/call")).toBe(1);
  });
});

it("a server that says to come back at once, each time, is not asked without a pause", async () => {
  const stub = await start(
    stubHttp({
      capabilities: { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
      onCall: () => ({
        resultType: "task",
        taskId: "t1",
        status: "working",
        ttlMs: null,
        createdAt: "",
        lastUpdatedAt: "",
      }),
      on: { "tasks/get": (_, reply) => reply.http(429, { "retry-after": "0" }) },
    }),
  );
  const client = connect({ s: stub.config });
  const following = client.callTool("s", "t", {}, { task: { outageMs: 600 } });
  await expect(following).rejects.toMatchObject({ maybeExecuted: true });
  expect(stub.count("tasks/get")).toBeLessThanOrEqual(14); // each look is sent twice
});

describe("layers around a call that becomes a task", () => {
  it("see one call, and its result at the end", async () => {
    const trace: string[] = [];
    const watch: Interceptor = async (request, next) => {
      trace.push(`begin ${request.name}`);
      const outcome = await next(request.with({ headers: { "x-who": "me" } }));
      trace.push(`end ${renderText(outcome.content)}`);
      return outcome;
    };
    const client = connect(s(), { interceptors: [watch] });
    await client.callTool("s", "work", { ms: 300 });
    expect(trace).toEqual(["begin work", 'end {"done":"work","answers":{}}']);
    const about = scene.requests.filter(({ body }) => String(body.method).startsWith("tasks/"));
    expect(about.length).toBeGreaterThan(0);
    // whoever asks is known for every request about the task
    for (const { headers } of about) expect(headers["x-who"]).toBe("me");
    expect(new Set(about.map(({ headers }) => headers["mcp-name"]))).toEqual(new Set(Object.keys(scene.kept().tasks)));
  });

  it("that repeat calls never begin a second task", async () => {
    const client = connect(s(), { interceptors: [retry({ initialDelayMs: 1 })] });
    await expect(client.callTool("s", "work", { fail: true })).rejects.toMatchObject({ code: "rpc_error" });
    const away = client.callTool("s", "work", { ms: 5_000 }, { task: { outageMs: 1 } });
    const failed = expect(away).rejects.toMatchObject({ code: "unreachable" });
    await scene.until(() => Object.keys(scene.kept().tasks).length === 2);
    await scene.restart(200);
    await failed;
    expect(scene.count("tools/call")).toBe(2);
  });

  it("that repeat a call with its key find the same task", async () => {
    const again: Interceptor = async (request, next) => {
      await next(request);
      return next(request);
    };
    const client = connect(s(), { interceptors: [again] });
    await client.callTool("s", "work", {}, { meta: { [META.idempotencyKey]: "once" } });
    expect(scene.count("tools/call")).toBe(2);
    expect(Object.keys(scene.kept().tasks)).toHaveLength(1);
  });

  it("that limit its time cancel it", async () => {
    const client = connect(s(), { interceptors: [timeout({ timeoutMs: 1_500 })] });
    await expect(client.callTool("s", "work", { ms: 60_000 })).rejects.toMatchObject({ code: "timeout" });
    await scene.until(() => scene.count("tasks/cancel") === 1);
  });

  it("that write it down write one outcome, when it is over", async () => {
    const entries: (AuditIntent | AuditOutcome)[] = [];
    const client = connect(s(), { interceptors: [audit({ sink: (entry) => entries.push(entry) })] });
    await client.callTool("s", "work", { ms: 300 });
    expect(entries.map(({ kind }) => kind)).toEqual(["intent", "outcome"]);
    expect(entries[1]).toMatchObject({ outcome: "ok" });
    expect((entries[1] as AuditOutcome).ms).toBeGreaterThanOrEqual(250);
    await expect(client.callTool("s", "work", { fail: true })).rejects.toBeDefined();
    expect(entries.at(-1)).toMatchObject({ kind: "outcome", outcome: "error", error: { code: "rpc_error" } });
  });
});

describe("the beginning of a task", () => {
  it("is sent again with the same key when its answer was lost, where the tool says that it makes tasks", async () => {
    const keys: unknown[] = [];
    const done = { status: "completed", result: { content: [{ type: "text", text: "one" }] } };
    const stub = await start(
      stubHttp({
        capabilities: { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
        tools: [{ name: "t", inputSchema: { type: "object" }, _meta: { "dev.tenon/task": "required" } }],
        onCall: ({ params }, reply) => {
          keys.push((params._meta as Record<string, unknown>)[META.idempotencyKey]);
          if (keys.length === 1) return reply.die();
          return { resultType: "task", taskId: "t1", status: "working" };
        },
        on: { "tasks/get": () => ({ taskId: "t1", ...done }) },
      }),
    );
    const client = connect({ s: stub.config });
    expect(renderText((await client.callTool("s", "t")).content)).toBe("one");
    expect(keys).toEqual([expect.any(String), keys[0]]);
  });

  it("is declared to servers of the newer revision, and to no other", async () => {
    const capabilities: unknown[] = [];
    const modern = await start(
      stubHttp({ onCall: ({ params }) => ({ content: [], n: capabilities.push(params._meta) }) }),
    );
    const legacy = await start(stubHttp({ era: "legacy" }));
    const client = connect({ modern: modern.config, legacy: legacy.config });
    await client.callTool("modern", "t");
    await client.callTool("legacy", "t");
    const extensions = { "io.modelcontextprotocol/tasks": {} };
    expect(capabilities[0]).toMatchObject({ "io.modelcontextprotocol/clientCapabilities": { extensions } });
    const handshake = legacy.requests.find(({ method }) => method === "initialize");
    expect(handshake?.params.capabilities).not.toHaveProperty("extensions");
  });

  it("finds tools that only run as tasks in the list, where the server has tasks", async () => {
    const inputSchema = { type: "object" };
    const tools = [
      { name: "draft", inputSchema, execution: { taskSupport: "required" } },
      { name: "free", inputSchema },
      { name: "ours", inputSchema, _meta: { "dev.tenon/task": "required" } },
    ];
    const extensions = { "io.modelcontextprotocol/tasks": {} };
    const able = await start(stubHttp({ tools, capabilities: { tools: {}, extensions } }));
    const unable = await start(stubHttp({ tools }));
    const client = connect({ able: able.config, unable: unable.config });
    const listed = await client.listTools();
    expect(listed.map(({ server, wireName, task }) => [server, wireName, task])).toEqual([
      ["able", "draft", "required"],
      ["able", "free", "optional"],
      ["able", "ours", "required"],
      ["unable", "free", undefined],
    ]);
    const reason = expect.stringContaining("its server does not offer the tasks extension");
    expect(client.servers()[1]?.problems).toEqual([
      { tool: "draft", reason },
      { tool: "ours", reason },
    ]);
  });
});

describe("a pool of processes", () => {
  it("is asked for a task where the task is", async () => {
    const client = connect({ s: { ...scene.child("own"), pool: 2 } });
    const call = (label: string) => client.callTool("s", "work", { label, ms: 400 });
    const outcomes = await Promise.all([call("a"), call("b"), call("c")]);
    expect(outcomes.map((outcome) => said(outcome).done)).toEqual(["a", "b", "c"]);
  });
});
