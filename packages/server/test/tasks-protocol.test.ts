import { openMemory } from "@tenon/store";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { createServer, type Extension, type TenonServer } from "../src/index.ts";
import { connect } from "../src/testing/index.ts";
import { call, said as saidNow, value } from "./ask.ts";
import { fuzz } from "./fuzz.ts";
import { legacy, META, modern, overFetch, overSocket, type Raw } from "./raw-requests.ts";
import { ABLE, answer, asks, begin, caller, ended, follow, look, request, said, TASKS } from "./tasks.ts";

const stores = openMemory();
const runs: string[] = [];
let server: TenonServer;
let url: string;
beforeAll(async () => {
  server = createServer({ name: "protocol", version: "1.0.0", store: stores, logSink: () => undefined })
    .tool("plain", {}, () => "plain")
    .tool("add", { input: z.object({ n: z.number() }), task: "optional" }, ({ n }) => {
      runs.push(`add ${n}`);
      return n + 1;
    })
    .tool("must", { task: "required", meta: { mine: 1 } }, () => "done")
    .tool("guarded", { task: "optional", scopes: ["pay"] }, async (_, ctx) => {
      const sure = await ctx.elicit("Sure?", z.boolean());
      return sure.action;
    });
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(async () => {
  await server.close();
  await stores.close();
});

const paths = [
  ["fetch", (raw: Raw) => overFetch(server, raw)],
  ["listen", (raw: Raw) => overSocket(url, raw)],
] as const;
const able = { meta: { [META.capabilities]: ABLE } };
const missing = { code: -32_021, data: { requiredCapabilities: { extensions: { [TASKS]: {} } } } };

describe("the tasks extension", () => {
  it("is advertised where a tool has tasks, on 2026-07-28 alone, and tools say what they are", async () => {
    await using client = await connect(server);
    expect(client.server.capabilities.extensions).toEqual({ [TASKS]: {} });
    const tools = await client.listTools();
    const meta = (name: string) => tools.find((tool) => tool.name === name)?._meta;
    expect([meta("plain"), meta("add")]).toEqual([undefined, { "dev.tenon/task": "optional" }]);
    expect(meta("must")).toEqual({ mine: 1, "dev.tenon/task": "required" });
    await using old = await connect(server, { era: "legacy" });
    expect(old.server.capabilities.extensions).toBeUndefined();
    // in a session too
    await expect(old.callTool("must")).rejects.toMatchObject({ data: missing });
    expect((await old.callTool("add", { n: 1 })).text).toBe("2");
    const none = createServer({ name: "none", version: "1.0.0" }).tool("plain", { task: "never" }, () => "");
    await using other = await connect(none);
    expect(other.server.capabilities.extensions).toBeUndefined();
    none.tool("late", { task: "optional" }, () => "");
    await using later = await connect(none);
    expect(later.server.capabilities.extensions).toEqual({ [TASKS]: {} });
    await none.close();
  });

  it("is offered once: an extension with its id is refused", () => {
    const taken: Extension = { id: TASKS };
    expect(() => server.extension(taken)).toThrow("added twice");
  });

  it("says what is wrong with an option", () => {
    const make = (task: unknown) => () =>
      createServer({ name: "n", version: "1" }).tool("t", { task } as never, () => "");
    expect(make("always")).toThrow("tool t: task.use must be one of optional, required, never");
    expect(make({})).toThrow("tool t: task.use must be one of");
    expect(make({ use: "optional", ttlms: 5 })).toThrow('did you mean "ttlMs"?');
    expect(make({ use: "optional", ttlMs: 0 })).toThrow("task.ttlMs must be a whole number of milliseconds, 1 or more");
    expect(make(7)).toThrow("task must be");
    const tasks = (given: object) => () => createServer({ name: "n", version: "1", tasks: given });
    expect(tasks({ concurrency: -1 })).toThrow("concurrency must be a whole number of tasks, 0 or more");
    expect(tasks({ retries: 1 })).toThrow('has no option "retries"');
    const store = openMemory().outcomes as never;
    expect(() => createServer({ name: "n", version: "1", store })).toThrow("store must be all that openStores");
  });

  it("runs tasks without serving only where a tool has them", async () => {
    await expect(createServer({ name: "n", version: "1" }).work()).rejects.toMatchObject({ code: "no_tasks" });
    await expect(server.work({ concurrency: 0 })).rejects.toMatchObject({ code: "invalid_option" });
  });
});

describe.each(paths)("over %s", (_path, send) => {
  it("a client that did not declare it gets the plain call, or is refused", async () => {
    const plain = await send(modern("tools/call", { name: "add", arguments: { n: 1 } }));
    expect(plain).toMatchObject({ status: 200, messages: [{ result: { content: [{ text: "2" }] } }] });
    const refused = await send(modern("tools/call", { name: "must", arguments: {} }));
    expect(refused).toMatchObject({ status: 400, messages: [{ error: missing }] });
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const answered = await send(modern(method, { taskId: "x", inputResponses: {} }));
      expect(answered).toMatchObject({ status: 400, messages: [{ error: missing }] });
    }
  });

  it("on 2025-11-25 there are no tasks: the plain call, the same refusal, and no such methods", async () => {
    const declared = { meta: { [META.capabilities]: ABLE } };
    const plain = await send(legacy("tools/call", { name: "add", arguments: { n: 1 } }));
    expect(plain).toMatchObject({ status: 200, messages: [{ result: { content: [{ text: "2" }] } }] });
    const refused = await send(legacy("tools/call", { name: "must", arguments: {} }));
    expect(refused).toMatchObject({ status: 200, messages: [{ error: missing }] });
    expect(await send(legacy("tasks/get", { taskId: "x", _meta: declared }))).toMatchObject({
      messages: [{ error: { code: -32_601 } }],
    });
  });

  it("a call that cannot be right is no task", async () => {
    const wrong = await send(modern("tools/call", { name: "add", arguments: { n: "x" } }, able));
    expect(wrong).toMatchObject({ status: 200, messages: [{ result: { isError: true, resultType: "complete" } }] });
  });

  it("the header must repeat the id, and methods of the older tasks are gone", async () => {
    const created = await send(modern("tools/call", { name: "add", arguments: { n: 1 } }, able));
    const [{ result } = {}] = created.messages as { result?: { taskId: string } }[];
    const taskId = String(result?.taskId);
    expect(await send(modern("tasks/get", { taskId }, able))).toMatchObject({
      status: 200,
      messages: [{ result: { taskId } }],
    });
    for (const name of ["other", ""]) {
      const mismatch = await send(modern("tasks/get", { taskId }, { ...able, headers: { "mcp-name": name } }));
      expect(mismatch).toMatchObject({ status: 400, messages: [{ error: { code: -32_020 } }] });
    }
    for (const method of ["tasks/result", "tasks/list"]) {
      expect(await send(modern(method, { taskId }, able))).toMatchObject({
        status: 404,
        messages: [{ error: { code: -32_601 } }],
      });
    }
  });

  it("whatever is asked of tasks is answered or refused in kind", async () => {
    const anything = fc.oneof(
      fc.string(),
      fc.constantFrom("", "\u0000", "__proto__", `task_${"A".repeat(32)}`, "A".repeat(8_000), "../../x", "%00", "🧵"),
      fc.jsonValue(),
    );
    const asking = fc.record({
      method: fc.constantFrom("tasks/get", "tasks/update", "tasks/cancel"),
      taskId: anything,
      inputResponses: fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue()),
    });
    const property = fc.asyncProperty(asking, async ({ method, ...params }) => {
      const name =
        typeof params.taskId === "string" ? `=?base64?${Buffer.from(params.taskId).toString("base64")}?=` : "x";
      const reply = await send(modern(method, params, { ...able, headers: { "mcp-name": name } }));
      const [{ error } = {}] = reply.messages as { error?: { code: number } }[];
      expect(reply.status).toBeLessThan(500);
      expect([-32_602, -32_020, -32_600]).toContain(error?.code);
    });
    await fc.assert(property, fuzz(60));
  });
});

describe("a task", () => {
  it("belongs to its caller: for everybody else, and after its time, it is like one that never was", async () => {
    const ann = { caller: { ...caller("ann"), clientId: "desk", issuer: "https://a" } };
    const { taskId } = await begin(server, "add", { n: 1 }, ann);
    await follow(server, taskId, ended, ann);
    const strangers = [
      {},
      { caller: caller("ann") },
      { caller: { ...ann.caller, subject: "bob" } },
      { caller: { ...ann.caller, clientId: "other" } },
      { caller: { ...ann.caller, issuer: "https://b" } },
    ];
    const never = await request(server, "tasks/get", { taskId: `task_${"A".repeat(32)}` }, ann);
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      for (const stranger of strangers) {
        expect((await request(server, method, { taskId, inputResponses: {} }, stranger)).error).toEqual(never.error);
      }
    }
    expect(never.error).toMatchObject({ code: -32_602 });
  });

  it("is nothing to another server that shares the store", async () => {
    const other = createServer({ name: "other", version: "1.0.0", store: stores }).tool(
      "t",
      { task: "optional" },
      () => "",
    );
    const { taskId } = await begin(server, "add", { n: 1 });
    expect((await request(other, "tasks/get", { taskId })).error?.code).toBe(-32_602);
    await other.close();
  });

  it("is one for calls of one caller under one idempotency key; with other arguments it is refused", async () => {
    runs.length = 0;
    const key = { idempotencyKey: "k1" };
    const one = await begin(server, "add", { n: 41 }, key);
    const same = await begin(server, "add", { n: 41 }, key);
    expect([same.taskId, same._meta?.["dev.tenon/replayed"]]).toEqual([one.taskId, true]);
    await follow(server, one.taskId);
    expect(await begin(server, "add", { n: 41 }, key)).toMatchObject({ taskId: one.taskId, status: "completed" });
    const other = await request(server, "tools/call", { name: "add", arguments: { n: 42 } }, key);
    expect(other.error).toMatchObject({ code: -32_602, data: { reason: "answered" } });
    const bob = await begin(server, "add", { n: 42 }, { ...key, caller: caller("bob") });
    await follow(server, bob.taskId, ended, { caller: caller("bob") });
    expect(runs).toEqual(["add 41", "add 42"]);
    const none = await request(server, "tools/call", { name: "add", arguments: { n: 1 } }, { idempotencyKey: "" });
    expect(none.error?.code).toBe(-32_602);
  });

  it("needs the scopes of its tool to begin and to be answered, not to be looked at or cancelled", async () => {
    const may = { caller: caller("ann", ["pay"]) };
    const mayNot = { caller: caller("ann") };
    const refused = await request(server, "tools/call", { name: "guarded" }, mayNot);
    expect(JSON.stringify(refused.error)).toContain("pay");
    const { taskId } = await begin(server, "guarded", {}, may);
    const open = await follow(server, taskId, asks, mayNot);
    const late = await answer(server, open, { "Sure?": value(true) }, mayNot);
    expect(late.error).toMatchObject({ code: -32_602, data: { reason: "insufficient_scope", scopes: ["pay"] } });
    expect((await look(server, taskId, mayNot)).status).toBe("input_required");
    await answer(server, open, { "Sure?": value(true) }, may);
    expect(said(await follow(server, taskId, ended, may))).toBe("accept");
    expect((await request(server, "tasks/cancel", { taskId }, mayNot)).error).toBeUndefined();
  });

  it("cannot be asked for what its client cannot be asked: then it has failed and says so", async () => {
    const bare = { capabilities: { extensions: { [TASKS]: {} } }, caller: caller("ann", ["pay"]) };
    const { taskId } = await begin(server, "guarded", {}, bare);
    expect(await follow(server, taskId, ended, bare)).toMatchObject({
      status: "failed",
      error: { code: -32_021, data: { requiredCapabilities: { elicitation: { form: {} } } } },
    });
  });

  it("that has ended takes no answers, and none is late enough to be an error", async () => {
    const may = { caller: caller("cleo", ["pay"]) };
    const { taskId } = await begin(server, "guarded", {}, may);
    const open = await follow(server, taskId, asks, may);
    await request(server, "tasks/cancel", { taskId }, may);
    expect((await answer(server, open, { "Sure?": value(true) }, may)).error).toBeUndefined();
    expect((await look(server, taskId, may)).status).toBe("cancelled");
  });
});

describe("servers without tools that are tasks", () => {
  it("know no methods of tasks", async () => {
    const none = createServer({ name: "none", version: "1.0.0" }).tool("plain", {}, () => "plain");
    expect((await request(none, "tasks/get", { taskId: "x" })).error?.code).toBe(-32_601);
    expect(saidNow(await call(none, "plain"))).toBe("plain");
    await none.close();
  });
});
