import { setTimeout as sleep } from "node:timers/promises";
import { ProtocolError } from "@modelcontextprotocol/server";
import { openMemory, type Stores } from "@tenon/store";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { createServer, type LogEntry, type ServerOptions, type TenonServer, ToolError } from "../src/index.ts";
import { said as saidNow, value } from "./ask.ts";
import { answer, asks, begin, caller, ended, follow, look, request, said } from "./tasks.ts";

let effects: string[];
let logged: LogEntry[];
const servers: TenonServer[] = [];
const opened: Stores[] = [];
beforeEach(() => {
  effects = [];
  logged = [];
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
  await Promise.all(opened.splice(0).map((stores) => stores.close()));
});

function memory(leaseMs?: number): Stores {
  const stores = openMemory(leaseMs === undefined ? {} : { leaseMs });
  opened.push(stores);
  return stores;
}
function make(options: Partial<ServerOptions> = {}): TenonServer {
  const logSink = (entry: LogEntry): void => void logged.push(entry);
  const server = createServer({ name: "tasks", version: "1.0.0", logSink, ...options });
  servers.push(server);
  return server;
}
const requestsOf = (task: { inputRequests?: Record<string, { params: { message: string } }> }): [string, string][] =>
  Object.entries(task.inputRequests ?? {}).map(([key, { params }]) => [key, params.message]);

describe("the handler of a task", () => {
  it("asks in the task, and goes on after the last finished step", async () => {
    const server = make().tool("pay", { input: z.object({ n: z.number() }), task: "required" }, async ({ n }, ctx) => {
      await ctx.step("reserve", () => void effects.push("reserve"));
      const sure = await ctx.elicit(`Pay ${n}?`, z.boolean());
      if (sure.action !== "accept" || !sure.data) return "not paid";
      const id = await ctx.step("pay", (key) => {
        effects.push(`pay ${n}`);
        return key;
      });
      return { paid: n, id, task: ctx.task?.id };
    });
    const { taskId } = await begin(server, "pay", { n: 5 });
    const asking = await follow(server, taskId, asks);
    expect(requestsOf(asking).map(([, message]) => message)).toEqual(["Pay 5?"]);
    expect((await answer(server, asking, { "Pay 5?": value(true) })).result).toMatchObject({ resultType: "complete" });
    const done = await follow(server, taskId);
    expect(JSON.parse(said(done))).toMatchObject({ paid: 5, task: taskId });
    expect(effects).toEqual(["reserve", "pay 5"]);
  });

  it("takes answers one by one, and goes on when all are there", async () => {
    const server = make().tool("two", { task: "required" }, async (_, ctx) => {
      const { a, b } = await ctx.elicitAll({ "A?": z.string(), "B?": z.string() }).then((all) => ({
        a: all["A?"],
        b: all["B?"],
      }));
      return [a, b].map((one) => (one.action === "accept" ? one.data : one.action)).join("+");
    });
    const { taskId } = await begin(server, "two");
    const both = await follow(server, taskId, asks);
    expect(requestsOf(both).map(([, message]) => message)).toEqual(["A?", "B?"]);
    await answer(server, both, { "A?": value("a") });
    const left = await look(server, taskId);
    expect([left.status, requestsOf(left).map(([, message]) => message)]).toEqual(["input_required", ["B?"]]);
    await answer(server, both, { "B?": { action: "decline" } });
    expect(said(await follow(server, taskId))).toBe("a+decline");
  });

  it("asks again, under a new key, for what was no valid answer; what is none at all does not count", async () => {
    const server = make().tool("age", { task: "required" }, async (_, ctx) => {
      const age = await ctx.elicit("Age?", z.number().min(18));
      return age.action === "accept" ? String(age.data) : age.action;
    });
    const { taskId } = await begin(server, "age");
    const first = await follow(server, taskId, asks);
    const [[key = ""] = []] = requestsOf(first);
    for (const nonsense of [{ action: "maybe" }, { content: { value: 3 } }, { action: "accept" }]) {
      await request(server, "tasks/update", { taskId, inputResponses: { [key]: nonsense, other: value(1) } });
      expect(requestsOf(await look(server, taskId)).map(([name]) => name)).toEqual([key]);
    }
    await answer(server, first, { "Age?": value(3) });
    const again = await follow(server, taskId, (task) => asks(task) && !(key in (task.inputRequests ?? {})));
    expect(requestsOf(again).map(([, message]) => message)).toEqual(["Age?"]);
    await answer(server, again, { "Age?": value(30) });
    expect(said(await follow(server, taskId))).toBe("30");
  });

  it("may ask a page, a model and for roots", async () => {
    const server = make().tool("all", { task: "required" }, async (_, ctx) => {
      const roots = await ctx.roots();
      const words = await ctx.sample({
        messages: [{ role: "user", content: { type: "text", text: "Hi" } }],
        maxTokens: 9,
      });
      const page = await ctx.elicitUrl("Sign", (id) => {
        pageId = id;
        return `https://pay.example/${id}`;
      });
      return JSON.stringify([roots.length, words.model, page]);
    });
    let pageId = "";
    const { taskId } = await begin(server, "all");
    const give = async (reply: object): Promise<void> => {
      const open = await follow(server, taskId, asks);
      const [[key = ""] = []] = Object.entries(open.inputRequests ?? {});
      await request(server, "tasks/update", { taskId, inputResponses: { [key]: reply } });
    };
    await give({ roots: [{ uri: "file:///a" }] });
    await give({ role: "assistant", model: "m", content: { type: "text", text: "Hello" } });
    await follow(server, taskId, asks);
    await server.completeElicitation(pageId, { data: "signed" });
    await give({ action: "accept" });
    expect(JSON.parse(said(await follow(server, taskId)))).toEqual([1, "m", { action: "accept", data: "signed" }]);
  });

  it("sees who called and what they said of themselves, and nothing of headers or tokens is stored", async () => {
    const stores = memory();
    const server = make({ store: stores }).tool("who", { task: "required" }, (_, ctx) => ({
      caller: ctx.caller?.subject,
      client: ctx.client.name,
      mine: ctx.meta["my/key"],
      progressToken: ctx.meta.progressToken ?? null,
      headers: [...(ctx.headers ?? [])].length,
    }));
    const headers = { authorization: "Bearer hunter2", "x-mine": "hunter2" };
    const params = { name: "who", arguments: {}, _meta: { "my/key": 7, progressToken: "hunter2" } };
    const reply = await request(server, "tools/call", params, { caller: caller("ann", ["a"]), headers });
    const taskId = String(reply.result?.taskId);
    const done = await follow(server, taskId, ended, { caller: caller("ann") });
    expect(JSON.parse(said(done))).toEqual({ caller: "ann", client: "raw", mine: 7, progressToken: null, headers: 0 });
    expect(JSON.stringify(await stores.tasks.list())).not.toContain("hunter2");
  });

  it("reads what its server offers with the rights of its caller: over HTTP a stranger stays one", async () => {
    const server = make()
      .resource("secret://a", { scopes: ["secret"] }, () => "open")
      .tool("read", { task: "required" }, async (_, ctx) => (await ctx.readResource("secret://a"))[0]?.text ?? "");
    const stranger = await begin(server, "read");
    expect(said(await follow(server, stranger.taskId))).toContain("failed");
    const ann = { caller: caller("ann", ["secret"]) };
    const own = await begin(server, "read", {}, ann);
    expect(said(await follow(server, own.taskId, ended, ann))).toBe("open");
  });

  it("keeps how far it is with the task", async () => {
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const server = make().tool("walk", { task: "optional" }, async (_, ctx) => {
      for (let i = 1; i <= 50; i++) await ctx.progress(i, 100, `stone ${i}`);
      await ctx.progress(Number.NaN);
      await gate;
      await ctx.progress(100, 100);
      return "there";
    });
    const { taskId } = await begin(server, "walk");
    const half = await follow(server, taskId, (task) => task.statusMessage === "stone 50");
    expect(half._meta?.["dev.tenon/progress"]).toEqual({ progress: 50, total: 100, message: "stone 50" });
    go();
    const done = await follow(server, taskId);
    expect(done._meta?.["dev.tenon/progress"]).toEqual({ progress: 100, total: 100 });
  });
});

describe("the end of a task", () => {
  it("is a result also where the tool failed, and an error where the protocol says so", async () => {
    const server = make()
      .tool("refuse", { task: "required" }, () => {
        throw new ToolError("Order 7 does not exist", { data: { id: 7 } });
      })
      .tool("break", { task: "required" }, () => {
        throw new ProtocolError(-32_600, "not so", { why: 1 });
      })
      .tool("leak", { task: "required" }, () => {
        throw new Error("password=hunter2");
      })
      .tool("wrong", { task: "required", output: z.object({ n: z.number() }) }, () => ({ n: "x" }) as never);
    const endOf = async (name: string) => follow(server, (await begin(server, name)).taskId);
    const refused = await endOf("refuse");
    expect(refused).toMatchObject({ status: "completed", result: { isError: true, structuredContent: { id: 7 } } });
    expect(said(refused)).toBe("Order 7 does not exist");
    expect(await endOf("break")).toMatchObject({
      status: "failed",
      error: { code: -32_600, message: "not so", data: { why: 1 } },
    });
    const leaked = await endOf("leak");
    expect(leaked.result?.isError).toBe(true);
    expect(said(leaked)).toMatch(/^Tool leak failed \(reference \w+\)$/);
    expect((await endOf("wrong")).result?.isError).toBe(true);
  });

  it("comes after more attempts where the tool has them, and is dead after the last", async () => {
    const stores = memory();
    const server = make({ store: stores })
      .tool("third", { task: { use: "required", attempts: 3 } }, async (_, ctx) => {
        await ctx.step("once", () => void effects.push("once"));
        effects.push("try");
        if (effects.length < 3) throw new Error("not yet");
        return "done";
      })
      .tool("never", { task: { use: "required", attempts: 2 } }, () => {
        throw new Error("hunter2");
      });
    const [third, never] = await Promise.all([begin(server, "third"), begin(server, "never")]);
    const untilTrying = (id: string) => follow(server, id, (task) => task.statusMessage !== undefined);
    const [again, trying] = await Promise.all([untilTrying(third.taskId), untilTrying(never.taskId)]);
    expect(again.statusMessage).toMatch(/; attempt 1 of 3 in /); // the run before it finished a step, and does not count
    expect(trying.statusMessage).toMatch(/^Tool never failed \(reference \w+\); attempt 2 of 2 in \d\.\d s$/);
    expect(said(await follow(server, third.taskId))).toBe("done");
    expect(effects).toEqual(["once", "try", "try"]);
    const dead = await follow(server, never.taskId);
    expect(dead).toMatchObject({ status: "failed", error: { code: -32_603 } });
    expect(JSON.stringify(dead)).not.toContain("hunter2");
    expect((await stores.tasks.list({ dead: true })).map(({ id }) => id)).toEqual([never.taskId]);
    const tasks = logged.filter(({ message }) => message === "Tool never failed").map((entry) => entry.task);
    expect(tasks, "the log says whose failures these are").toEqual([never.taskId, never.taskId]);
  });

  it("is brought about by tasks/cancel, which the handler hears of; what it returns is dropped", async () => {
    const server = make().tool("wait", { task: "optional" }, async (_, ctx) => {
      effects.push("waiting");
      await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve(), { once: true }));
      effects.push("aborted");
      await ctx.step("late", () => void effects.push("late"));
      return "never read";
    });
    const { taskId } = await begin(server, "wait");
    while (effects.length === 0) await sleep(5);
    expect((await request(server, "tasks/cancel", { taskId })).result).toMatchObject({ resultType: "complete" });
    expect(await look(server, taskId)).toMatchObject({ status: "cancelled" });
    while (effects.length < 2) await sleep(5);
    await sleep(20);
    expect(effects).toEqual(["waiting", "aborted"]); // no step begins after it
    expect(await look(server, taskId)).not.toHaveProperty("result");
    expect((await request(server, "tasks/cancel", { taskId })).error).toBeUndefined();
  });

  it("comes with its time, and a task that has ended is forgotten then", async () => {
    const server = make({ store: memory(100), tasks: { ttlMs: 300, pollIntervalMs: 10 } })
      .tool("wait", { task: "optional" }, async (_, ctx) => {
        await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve(), { once: true }));
        effects.push("aborted");
      })
      .tool("quick", { task: { use: "optional", ttlMs: null } }, () => "done");
    const { taskId, ttlMs, pollIntervalMs } = await begin(server, "wait");
    expect([ttlMs, pollIntervalMs]).toEqual([300, 10]);
    const { taskId: kept } = await begin(server, "quick");
    while (effects.length === 0) await sleep(10);
    let reply = await request(server, "tasks/get", { taskId });
    while (!reply.error) {
      await sleep(20);
      reply = await request(server, "tasks/get", { taskId });
    }
    expect(reply.error).toMatchObject({ code: -32_602, data: { reason: "unknown_task" } });
    expect(await look(server, kept)).toMatchObject({ status: "completed", ttlMs: null });
  });

  it("is not hindered by a handler that kept its process busy for longer than the lease lasts", async () => {
    const server = make({ store: memory(100) }).tool("busy", { task: "optional" }, async (_, ctx) => {
      effects.push("run");
      for (const until = performance.now() + 350; performance.now() < until; );
      await sleep(200);
      return ctx.step("after", () => "done");
    });
    expect(said(await follow(server, (await begin(server, "busy")).taskId))).toBe("done");
    expect(effects).toEqual(["run"]);
  });

  it("comes when the tool's own time is over; without one a task may take longer than a call", async () => {
    const server = make({ timeoutMs: 30 })
      .tool("long", { task: "optional" }, async () => {
        await sleep(120);
        return "done";
      })
      .tool("bounded", { task: "optional", timeoutMs: 30 }, async (_, ctx) => {
        await sleep(10_000, undefined, { signal: ctx.signal });
      });
    expect(said(await follow(server, (await begin(server, "long")).taskId))).toBe("done");
    const bounded = await follow(server, (await begin(server, "bounded")).taskId);
    expect([bounded.result?.isError, said(bounded)]).toEqual([true, expect.stringContaining("took longer than")]);
    expect(saidNow(await request(server, "tools/call", { name: "long" }, { capabilities: {} }))).toContain(
      "took longer",
    );
  });
});

describe("tools of all kinds", () => {
  it("are tasks: mounted ones, those of a worker thread, those with a defined limit of their arguments", async () => {
    const inner = make({ name: "inner" });
    inner.tool(
      "double",
      { input: z.object({ n: z.number() }), task: "optional" },
      ({ n }, ctx) => `${n * 2} ${!!ctx.task}`,
    );
    const server = make({ argumentLimits: { maxArrayElements: 10 } })
      .mount("shop", inner)
      .tool("thread", {
        input: z.object({ n: z.number() }),
        worker: new URL("./workers/plain.mjs", import.meta.url),
        task: "optional",
      })
      .tool(
        "many",
        { input: z.object({ ids: z.array(z.number()) }), argumentLimits: { maxArrayElements: 100 }, task: "optional" },
        ({ ids }) => ids.length,
      );
    const doubled = await begin(server, "shop_double", { n: 4 });
    expect(said(await follow(server, doubled.taskId))).toBe("8 true");
    const threaded = await begin(server, "thread", { n: 4 });
    expect(said(await follow(server, threaded.taskId))).toBe("8");
    const many = await begin(server, "many", { ids: Array.from({ length: 50 }, (_, i) => i) });
    expect(said(await follow(server, many.taskId))).toBe("50");
    const tooMany = await request(server, "tools/call", { name: "many", arguments: { ids: Array(101).fill(1) } });
    expect(saidNow(tooMany)).toContain("more than the limit of 100");
  });

  it("may ask in the call first, and become a task when the handler says so", async () => {
    const server = make().tool("report", { task: { use: "optional", start: "handler" } }, async (_, ctx) => {
      const month = await ctx.elicit("Month?", z.string());
      await ctx.step("prepare", () => void effects.push("prepare"));
      await ctx.startTask();
      await ctx.step("write", () => void effects.push(`write ${ctx.task ? "in a task" : "in the call"}`));
      return month.action === "accept" ? `report of ${month.data}` : "none";
    });
    const asked = await request(server, "tools/call", { name: "report" });
    expect(asked.result?.resultType).toBe("input_required");
    const [[key = ""] = []] = Object.entries(asked.result?.inputRequests ?? {});
    const retry = {
      name: "report",
      requestState: asked.result?.requestState,
      inputResponses: { [key]: value("May") },
    };
    const task = await request(server, "tools/call", retry);
    expect(task.result).toMatchObject({ resultType: "task" });
    expect(task.result).not.toHaveProperty("requestState");
    // a client that lost the answer gets the same task
    const again = await request(server, "tools/call", retry);
    expect(again.result?.taskId).toBe(task.result?.taskId);
    expect(said(await follow(server, String(task.result?.taskId)))).toBe("report of May");
    expect(effects).toEqual(["prepare", "write in a task"]);
    // a client without tasks gets the plain call
    const plain = { capabilities: { elicitation: { form: {} } } };
    const state = await request(server, "tools/call", { name: "report" }, plain);
    const done = await request(server, "tools/call", { ...retry, requestState: state.result?.requestState }, plain);
    expect(saidNow(done)).toBe("report of May");
    expect(effects.at(-1)).toBe("write in the call");
  });

  it("are seen by middleware when the task is made and asked about, not when it runs", async () => {
    const seen: string[] = [];
    const server = make().use(async (asked, next) => {
      seen.push(asked.method);
      return next();
    });
    server.tool("add", { task: "optional" }, () => 3);
    const { taskId } = await begin(server, "add");
    while (!ended(await look(server, taskId))) await sleep(10);
    expect(seen.filter((method) => method !== "tasks/get")).toEqual(["tools/call"]);
    expect(seen).toContain("tasks/get");
  });
});
