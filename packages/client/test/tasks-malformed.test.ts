import { TenonError } from "@tenon/core";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { closeAfterEach, connect, STUBS, type StubHandler, start, stubHttp } from "./stub/index.ts";

closeAfterEach();

const RUNS = Number(process.env.TENON_FUZZ_RUNS ?? 25);
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

it("an answer that its server lost, although it took it, is given again", async () => {
  const properties = { ok: { type: "boolean" } };
  const params = { mode: "form", message: "Sure?", requestedSchema: { type: "object", properties } };
  const asks = {
    taskId: "t1",
    status: "input_required",
    inputRequests: { a: { method: "elicitation/create", params } },
  };
  let kept = false;
  const stub = await start(
    stubHttp({
      capabilities,
      onCall: () => created,
      on: {
        "tasks/get": () => (kept ? completed({ content: [] }) : { ...asks, pollIntervalMs: 100 }),
        "tasks/update": ({ nth }) => {
          kept = nth > 1;
          return {};
        },
      },
    }),
  );
  let asked = 0;
  const elicitation = () => {
    asked += 1;
    return { action: "accept" as const, content: { ok: true } };
  };
  const call = connect({ s: stub.config }, { elicitation }).callTool("s", "t");
  await vi.waitFor(() => expect(stub.count("tasks/get")).toBeGreaterThan(4), 5_000);
  expect(stub.count("tasks/update")).toBe(1);
  const now = performance.now.bind(performance);
  const later = vi.spyOn(performance, "now").mockImplementation(() => now() + 11_000);
  try {
    expect(await call).toMatchObject({ isError: false });
  } finally {
    later.mockRestore();
  }
  expect(stub.count("tasks/update")).toBe(2);
  expect(asked).toBe(1);
});

it(
  "whatever a server tells of a task, the call ends, and soon",
  async () => {
    let told: unknown;
    const stub = await start(
      stubHttp({
        capabilities,
        onCall: () => created,
        on: {
          "tasks/get": (request, reply) => {
            const json = JSON.stringify({ jsonrpc: "2.0", id: request.id, result: told ?? null });
            reply.http(200, { "content-type": "application/json" }, json);
          },
        },
      }),
    );
    const elicitation = () => ({ action: "decline" as const });
    const client = connect({ s: stub.config }, { elicitation });
    const any = fc.jsonValue({ maxDepth: 3 });
    const task = fc.record(
      {
        resultType: fc.oneof(fc.constantFrom("complete", "task", "input_required"), any),
        taskId: fc.oneof({ weight: 8, arbitrary: fc.constant("t1") }, any),
        status: fc.oneof(fc.constantFrom("working", "input_required", "completed", "failed", "cancelled"), any),
        inputRequests: fc.oneof(fc.dictionary(fc.string(), any, { maxKeys: 3 }), any),
        result: fc.oneof(fc.record({ content: any, isError: any, structuredContent: any }, { requiredKeys: [] }), any),
        error: any,
        pollIntervalMs: any,
        _meta: any,
      },
      { requiredKeys: ["taskId"] },
    );
    await fc.assert(
      fc.asyncProperty(fc.oneof({ weight: 5, arbitrary: task }, any), async (answer) => {
        told = answer;
        const began = performance.now();
        const ended: unknown = await client
          .callTool("s", "t", {}, { task: { totalMs: 300, outageMs: 100, maxRounds: 2 } })
          .catch((error: unknown) => error);
        expect(performance.now() - began).toBeLessThan(5_000);
        if (ended instanceof Error) {
          expect(ended).toBeInstanceOf(TenonError);
          expect(ended).toMatchObject({ retryable: false, maybeExecuted: true, data: { taskId: "t1" } });
        } else expect(ended).toMatchObject({ isError: expect.any(Boolean) });
      }),
      { numRuns: RUNS },
    );
  },
  60_000 + RUNS * 1_000,
);
