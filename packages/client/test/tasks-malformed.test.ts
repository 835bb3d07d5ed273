import { describe, expect, it } from "vitest";
import { closeAfterEach, connect, STUBS, type StubHandler, start, stubHttp } from "./stub/index.ts";

closeAfterEach();

const capabilities = { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } };
const created = { resultType: "task", taskId: "t1", status: "working", pollIntervalMs: 100 };
const completed = (result: unknown) => ({ taskId: "t1", status: "completed", result });

describe.each(STUBS)("a server over %s that tells of a task against the protocol", (_, stub) => {
  it.each<[string, Record<string, unknown>]>([
    ["without an id", { status: "working" }],
    ["with an id that is no text", { taskId: 7, status: "working" }],
    ["with an endless id", { taskId: "x".repeat(100_000), status: "working" }],
    ["without a status", { taskId: "t1" }],
    ["with a status that is none", { taskId: "t1", status: "resting" }],
  ])("fails the call that it answers %s", async (_, answer) => {
    const server = await start(stub({ capabilities, onCall: () => ({ resultType: "task", ...answer }) }));
    const failed = connect({ s: server.config }).callTool("s", "t");
    await expect(failed).rejects.toMatchObject({ code: "bad_answer", server: "s", maybeExecuted: true });
    expect(server.count("tasks/get")).toBe(0);
  });

  it.each<[string, Record<string, unknown>, string]>([
    ["of another task", { taskId: "t2", status: "working" }, "instead of"],
    ["nothing", {}, "no id"],
    ["a status that is none", { taskId: "t1", status: ["completed"] }, "status of its task is a list"],
    ["questions in a list", { taskId: "t1", status: "input_required", inputRequests: [1] }, "no object"],
    [
      "questions without end",
      {
        taskId: "t1",
        status: "input_required",
        inputRequests: Object.fromEntries(Array.from({ length: 500 }, (_, n) => [n, {}])),
      },
      "500 questions",
    ],
    ["no result", completed(undefined), "its result is nothing"],
    ["a result that is none", completed("yes"), 'its result is "yes"'],
    ["a result of another type", completed({ resultType: "input_required" }), "resultType"],
    ["content that is no list", completed({ content: "yes" }), "content is not a list"],
    ["a block that is none", completed({ content: [1] }), "content[0]"],
  ])("fails the call when it is told %s", async (_, answer, words) => {
    const server = await start(stub({ capabilities, onCall: () => created, on: { "tasks/get": () => answer } }));
    const failed = connect({ s: server.config }).callTool("s", "t");
    await expect(failed).rejects.toMatchObject({
      code: "bad_answer",
      retryable: false,
      maybeExecuted: true,
      message: expect.stringContaining(words),
      data: { taskId: "t1" },
    });
    expect(server.count("tasks/get")).toBe(1);
  });

  it("fails the call for a question that nobody could answer", async () => {
    const inputRequests = { a: { method: "elicitation/create", params: { requestedSchema: { type: "array" } } } };
    const answer = { taskId: "t1", status: "input_required", inputRequests };
    const server = await start(stub({ capabilities, onCall: () => created, on: { "tasks/get": () => answer } }));
    const client = connect({ s: server.config }, { elicitation: () => ({ action: "cancel" }) });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({
      code: "unsupported_question",
      data: { taskId: "t1" },
    });
  });

  it("fails the call for a result that is too large", async () => {
    const answer = completed({ content: [{ type: "text", text: "x".repeat(5_000) }] });
    const server = await start(stub({ capabilities, onCall: () => created, on: { "tasks/get": () => answer } }));
    const failed = connect({ s: server.config }).callTool("s", "t", {}, { maxResultBytes: 2_000 });
    await expect(failed).rejects.toMatchObject({ code: "too_large", data: { limit: 2_000, taskId: "t1" } });
  });

  it("is understood where it only says more, or less, than it should", async () => {
    const answers: Record<string, unknown>[] = [
      { taskId: "t1", status: "working", statusMessage: 7, pollIntervalMs: "soon", ttlMs: "long", inputRequests: null },
      {
        resultType: "task",
        taskId: "t1",
        status: "input_required",
        inputRequests: {},
        _meta: { "dev.tenon/progress": 1 },
      },
      { ...completed({ content: [{ type: "text", text: "ok" }], resultType: "complete" }), inputRequests: { a: 1 } },
    ];
    const look: StubHandler = ({ nth }) => answers[nth - 1] ?? {};
    const server = await start(stub({ capabilities, onCall: () => created, on: { "tasks/get": look } }));
    const outcome = await connect({ s: server.config }).callTool("s", "t");
    expect(outcome).toMatchObject({ isError: false, content: [{ text: "ok" }] });
  });

  it("cannot make the client ask more often than ten times a second", async () => {
    const eager = { taskId: "t1", status: "working", pollIntervalMs: 0.001 };
    const server = await start(stub({ capabilities, onCall: () => created, on: { "tasks/get": () => eager } }));
    const call = connect({ s: server.config }).callTool("s", "t", {}, { task: { totalMs: 1_000 } });
    await expect(call).rejects.toMatchObject({ code: "timeout" });
    expect(server.count("tasks/get")).toBeLessThanOrEqual(10);
  });
});

it("an answer that is refused ends the call where its question stays open, and does not where it does not", async () => {
  const properties = { ok: { type: "boolean" } };
  const params = { mode: "form", message: "Sure?", requestedSchema: { type: "object", properties } };
  const asks = {
    taskId: "t1",
    status: "input_required",
    inputRequests: { a: { method: "elicitation/create", params } },
  };
  const elicitation = () => ({ action: "accept" as const, content: { ok: true } });
  const on = (after: Record<string, unknown>): Record<string, StubHandler> => {
    let answered = false;
    return {
      "tasks/get": () => (answered ? after : asks),
      "tasks/update": (_, reply) => {
        answered = true;
        reply.error(-32_602, "the answer came too late");
      },
    };
  };
  const strict = await start(stubHttp({ capabilities, onCall: () => created, on: on(asks) }));
  const late = await start(stubHttp({ capabilities, onCall: () => created, on: on(completed({ content: [] })) }));
  const client = connect({ strict: strict.config, late: late.config }, { elicitation });
  await expect(client.callTool("strict", "t")).rejects.toMatchObject({
    code: "rpc_error",
    message: expect.stringContaining("came too late"),
  });
  expect(await client.callTool("late", "t")).toMatchObject({ isError: false });
});

it("a server of the older revision has no tasks, whatever it answers", async () => {
  const stub = await start(stubHttp({ era: "legacy", onCall: () => ({ ...created, content: [] }) }));
  const client = connect({ s: stub.config });
  await client.callTool("s", "t").catch(() => {});
  expect(stub.count("tasks/get")).toBe(0);
});
