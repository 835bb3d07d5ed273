import { ProtocolError } from "@tenon/core";
import { describe, expect, it } from "vitest";
import { type Interceptor, renderText, type TaskHandle, type ToolCallOutcome } from "../src/index.ts";
import { type AuditIntent, type AuditOutcome, audit, cache } from "../src/interceptors/index.ts";
import { legacy, modern } from "./servers.ts";
import { closeAfterEach, connect, start, stubHttp } from "./stub/index.ts";
import { taskServers } from "./tasks-scene.ts";

closeAfterEach();
const scene = taskServers();

const yes = { action: "accept" as const, content: { ok: true } };
const said = (outcome: ToolCallOutcome) => JSON.parse(renderText(outcome.content)) as Record<string, unknown>;
const s = () => ({ s: { url: scene.url } });
const begin = async (args: Record<string, unknown>): Promise<TaskHandle> => {
  const task = await connect(s()).tasks.start("s", "work", args);
  if (task.id === undefined) throw new Error("it was answered at once");
  return task;
};

describe("a task that is only started", () => {
  it("is a handle that can be kept, and followed by another client by its id", async () => {
    const task = await begin({ ms: 400, label: "kept", says: "page" });
    expect(task).toEqual({
      id: expect.any(String),
      server: "s",
      tool: "work",
      status: "working",
      statusMessage: expect.any(String),
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      ttlMs: 60_000,
      pollIntervalMs: 100,
    });
    expect(JSON.parse(JSON.stringify(task))).toEqual(task);
    const heard: unknown[] = [];
    const outcome = await connect(s()).tasks.resume("s", task.id, { onProgress: (_, source) => heard.push(source) });
    expect(said(outcome)).toMatchObject({ done: "kept" });
    expect(heard[0]).toEqual({ server: "s", callId: expect.stringMatching(/^call-/), taskId: task.id });
    expect(scene.count("tools/call")).toBe(1);
  });

  it("is its result where the tool answers at once", async () => {
    const task = await connect(s()).tasks.start("s", "quick");
    expect(task).toMatchObject({ id: undefined, server: "s", tool: "quick", status: "completed" });
    if (task.id === undefined) expect(renderText(task.result.content)).toBe("at once");
  });

  it("survives that its server is killed, and its client is another process's", async () => {
    const first = await scene.process();
    const task = await connect({ s: { url: first.url } }).tasks.start("s", "work", { ms: 1_500, label: "nightly" });
    const following = connect({ s: { url: first.url } }).tasks.resume("s", task.id ?? "");
    await scene.until(() => scene.count("tasks/get") > 0);
    await first.kill();
    const second = await scene.process(first.port);
    try {
      expect(said(await following)).toMatchObject({ done: "nightly" });
      expect(said(await connect({ s: { url: second.url } }).tasks.resume("s", task.id ?? ""))).toMatchObject({
        done: "nightly",
      });
      expect(scene.count("tools/call")).toBe(1);
    } finally {
      await second.kill();
    }
  });

  it("is told of as it stands", async () => {
    const client = connect(s());
    const { tasks } = client;
    const busy = await begin({ ms: 60_000, counts: true });
    expect(await tasks.get("s", busy.id)).toMatchObject({ status: "working", progress: { total: 60_000 } });
    const done = await begin({ label: "x" });
    expect(await tasks.get("s", done.id, { tool: "work" })).toMatchObject({
      status: "completed",
      tool: "work",
      result: { isError: false },
    });
    const failed = await begin({ fail: true });
    expect(await tasks.get("s", failed.id)).toMatchObject({ status: "failed", error: { code: "rpc_error" } });
    const asking = await begin({ ask: ["a"] });
    const asked = await tasks.get("s", asking.id);
    expect(asked).toMatchObject({ status: "input_required", questions: { a: { mode: "form", message: "a?" } } });
    expect(JSON.parse(JSON.stringify(asked))).toEqual(asked);
  });

  it("is answered by key, all or some", async () => {
    const { tasks } = connect(s());
    const { id } = await begin({ ask: ["a", "b"] });
    await expect(tasks.answer("s", id, { a: { action: "accept", content: { ok: "perhaps" } } })).rejects.toMatchObject({
      code: "invalid_answer",
    });
    expect(scene.count("tasks/update")).toBe(0);
    expect(await tasks.answer("s", id, { a: yes, z: yes })).toEqual(["a"]);
    expect(Object.keys((await tasks.get("s", id)).questions ?? {})).toEqual(["b"]);
    expect(await tasks.answer("s", id, { b: { action: "decline" } })).toEqual(["b"]);
    expect(await tasks.answer("s", id, { b: yes })).toEqual([]);
    expect(said(await tasks.resume("s", id))).toMatchObject({ answers: { a: yes, b: { action: "decline" } } });
  });

  it("is cancelled", async () => {
    const { tasks } = connect(s());
    const { id } = await begin({ ms: 60_000 });
    await tasks.cancel("s", id);
    expect(await tasks.get("s", id)).toMatchObject({ status: "cancelled", error: { code: "task_cancelled" } });
    await expect(tasks.resume("s", id)).rejects.toMatchObject({ code: "task_cancelled" });
  });

  it("has its questions answered by whoever follows it", async () => {
    const { id } = await begin({ ask: ["a"] });
    const client = connect(s(), { elicitation: () => yes });
    expect(said(await client.tasks.resume("s", id))).toMatchObject({ answers: { a: yes } });
  });

  it("has its result checked where it is said which tool it was", async () => {
    const client = connect(s());
    await client.listTools();
    const task = await client.tasks.start("s", "counted", { structured: { n: "many" } });
    const wrong = await client.tasks.resume("s", task.id ?? "", { tool: "counted" });
    expect(wrong).toMatchObject({ isError: true, problem: { code: "invalid_output" } });
    expect(await client.tasks.resume("s", task.id ?? "")).toMatchObject({ isError: false });
  });
});

describe("what is refused", () => {
  it.each(["get", "cancel", "resume"] as const)("%s of a task that there is not", async (method) => {
    const failed = connect(s()).tasks[method]("s", "nowhere");
    await expect(failed).rejects.toBeInstanceOf(ProtocolError);
    await expect(failed).rejects.toMatchObject({ code: "task_gone", maybeExecuted: true, data: { taskId: "nowhere" } });
  });

  it.each([
    ["without the extension", modern],
    ["of the older revision", legacy],
  ])("all of it on a server %s", async (_, make) => {
    const server = await make();
    const { tasks } = connect({ s: { url: server.url } });
    try {
      for (const ask of [
        () => tasks.start("s", "echo", { text: "hi" }),
        () => tasks.get("s", "x"),
        () => tasks.answer("s", "x", {}),
        () => tasks.cancel("s", "x"),
        () => tasks.resume("s", "x"),
      ]) {
        await expect(ask()).rejects.toMatchObject({ code: "no_tasks", maybeExecuted: false, server: "s" });
      }
      const sent = server.requests.map(({ body }) => String(body.method));
      expect(sent.filter((method) => method.startsWith("t"))).toEqual([]);
    } finally {
      await server.kill();
    }
  });

  it("options that nobody reads, and ids that are none", async () => {
    const { tasks, callTool } = connect(s());
    await expect(tasks.get("s", "x", { tols: "y" } as object)).rejects.toMatchObject({ code: "unknown_option" });
    await expect(tasks.resume("s", 7 as unknown as string)).rejects.toMatchObject({ code: "invalid_option" });
    await expect(tasks.get("t", "x")).rejects.toMatchObject({ code: "unknown_server" });
    const misspelt = { task: { totalMS: 1 } } as object;
    await expect(callTool.call(connect(s()), "s", "work", {}, misspelt)).rejects.toMatchObject({
      code: "unknown_option",
      message: expect.stringContaining("totalMs"),
    });
  });
});

describe("layers around a task that is started here and followed there", () => {
  it("see its beginning and its following, each with what it comes to", async () => {
    const seen: unknown[] = [];
    const watch: Interceptor = async (request, next) => {
      const outcome = await next(request);
      seen.push([request.name, request.args, request.task, outcome.task?.id, renderText(outcome.content)]);
      return outcome;
    };
    const client = connect(s(), { interceptors: [watch] });
    const { id = "" } = await client.tasks.start("s", "work", { label: "x" });
    await client.tasks.resume("s", id, { tool: "work" });
    expect(seen).toEqual([
      ["work", { label: "x" }, undefined, id, ""],
      ["work", {}, id, undefined, '{"done":"x","answers":{}}'],
    ]);
  });

  it("keep neither the one nor the other for later calls, and write down one ending", async () => {
    const entries: (AuditIntent | AuditOutcome)[] = [];
    const extensions = { "io.modelcontextprotocol/tasks": {} };
    const stub = await start(
      stubHttp({
        capabilities: { tools: {}, extensions },
        tools: [{ name: "t", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }],
        onCall: ({ nth }) => ({ resultType: "task", taskId: `t${nth}`, status: "working" }),
        on: {
          "tasks/get": ({ params }) => {
            const result = { content: [{ type: "text", text: String(params.taskId) }] };
            return { taskId: params.taskId, status: "completed", result };
          },
        },
      }),
    );
    const layers = [audit({ sink: (entry) => entries.push(entry) }), cache({ ttlMs: 60_000 })];
    const { tasks, ...client } = connect({ s: stub.config }, { interceptors: layers });
    expect(await tasks.start("s", "t")).toMatchObject({ id: "t1" });
    expect(await tasks.start("s", "t")).toMatchObject({ id: "t2" });
    expect(renderText((await tasks.resume("s", "t1", { tool: "t" })).content)).toBe("t1");
    expect(renderText((await tasks.resume("s", "t2", { tool: "t" })).content)).toBe("t2");
    expect(entries.flatMap((entry) => (entry.kind === "outcome" ? [entry.outcome] : []))).toEqual([
      "suspended",
      "suspended",
      "ok",
      "ok",
    ]);
    void client;
  });
});
