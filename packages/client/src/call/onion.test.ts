import { describe, expect, expectTypeOf, it, onTestFinished } from "vitest";
import { modern } from "../../test/servers.ts";
import { clientOf, shop } from "../../test/shop.ts";
import {
  createClient,
  type Interceptor,
  renderText,
  type ToolCallRequest,
  type ToolResult,
  type ToolRuntime,
} from "../index.ts";

const forever = () => new Promise<never>(() => {});
const mine: ToolResult = { content: [{ type: "text", text: "mine" }], isError: false, meta: {}, raw: { content: [] } };
const text = (result: ToolResult) => renderText(result.content, result.structured);

describe("the layers around a call", () => {
  it("go in from the first to the last, and out the other way", async () => {
    const { url } = await shop({ t: {} });
    const trace: string[] = [];
    const layer =
      (name: string): Interceptor =>
      async (request, next) => {
        trace.push(`> ${name}`);
        const result = await next(request);
        trace.push(`< ${name}`);
        return result;
      };
    await clientOf(url, { interceptors: [layer("a"), layer("b"), layer("c")] }).callTool("s", "t");
    expect(trace).toEqual(["> a", "> b", "> c", "< c", "< b", "< a"]);
  });

  it("may answer themselves: nothing is sent, not even a connection is opened", async () => {
    const client = clientOf("http://127.0.0.1:9/mcp", { interceptors: [async () => mine] });
    expect(text(await client.callTool("s", "t"))).toBe("mine");
    expect(client.servers()[0]?.health).toBe("idle");
  });

  it("are named when they answer with nothing, or make an interceptor instead of being one", async () => {
    const { url } = await shop({ t: {} });
    const forgetful = (async (request: ToolCallRequest, next: (request: ToolCallRequest) => unknown) => {
      await next(request);
    }) as unknown as Interceptor;
    const mistaken = { code: "invalid_outcome" };
    const nothing = clientOf(url, { interceptors: [forgetful] }).callTool("s", "t");
    await expect(nothing).rejects.toMatchObject({ ...mistaken, maybeExecuted: true });
    await expect(nothing).rejects.toThrow(
      "interceptor forgetful answered with nothing; return what next(request) gives",
    );
    const myFactory = (() => async () => mine) as unknown as Interceptor;
    const uncalled = clientOf(url, { interceptors: [myFactory] }).callTool("s", "t");
    await expect(uncalled).rejects.toMatchObject({ ...mistaken, maybeExecuted: false });
    await expect(uncalled).rejects.toThrow("write myFactory(…) in the list");
  });

  it("may send a call twice, one after the other or at once", async () => {
    const server = await shop({ t: {} });
    const twice: Interceptor = async (request, next) => {
      await next(request);
      const [first] = await Promise.all([next(request), next(request.with({ args: { n: 3 } }))]);
      return first;
    };
    await clientOf(server.url, { interceptors: [twice] }).callTool("s", "t");
    expect(server.runs.t).toBe(3);
    expect(server.got).toContainEqual({ n: 3 });
  });

  it("change name, arguments, headers and meta for the inside only", async () => {
    const server = await shop({ t: {}, u: {} });
    const seen: ToolCallRequest[] = [];
    const outer: Interceptor = async (request, next) => {
      const inner = request.with({ name: "u", args: { b: 2 }, headers: { AUTHORIZATION: "new", "x-b": "2" } });
      const result = await next(inner.with({ meta: { "x/b": 2 } }));
      seen.push(request, inner);
      return result;
    };
    const client = clientOf(server.url, { interceptors: [outer] });
    await client.callTool("s", "t", { a: 1 }, { headers: { authorization: "old" }, meta: { "x/a": 1 } });
    expect(server.runs).toEqual({ u: 1 });
    expect(server.got).toEqual([{ b: 2 }]);
    const sent = server.requests.find(({ body }) => body.method === "tools/call");
    expect(sent?.headers).toMatchObject({ authorization: "new", "x-b": "2" });
    expect(sent?.body).toMatchObject({ params: { _meta: { "x/a": 1, "x/b": 2 } } });
    expect(seen[0]).toMatchObject({ name: "t", args: { a: 1 }, headers: { authorization: "old" } });
    expect(seen[1]).toMatchObject({ headers: { AUTHORIZATION: "new", "x-b": "2" }, meta: { "x/a": 1 } });
  });

  it("take a copy made by spreading, but none for another server, runtime or call", async () => {
    const server = await shop({ t: {} });
    const spread: Interceptor = (request, next) => next(Object.freeze({ ...request, args: { n: 1 } }));
    const more: Interceptor = (request, next) => next(request.with({ meta: { "x/y": 1 } }));
    await clientOf(server.url, { interceptors: [spread, more] }).callTool("s", "t");
    expect(server.got).toEqual([{ n: 1 }]);
    for (const change of [{ server: "other" }, { runtime: {} }, { callId: "call-9" }]) {
      const forged: Interceptor = (request, next) => next({ ...request, ...change });
      await expect(clientOf(server.url, { interceptors: [forged] }).callTool("s", "t")).rejects.toMatchObject({
        code: "read_only",
      });
      const by: Interceptor = (request, next) => next(request.with(change as object));
      await expect(clientOf(server.url, { interceptors: [by] }).callTool("s", "t")).rejects.toMatchObject({
        code: "unknown_option",
      });
    }
    const none = ((_: unknown, next: () => unknown) => next()) as unknown as Interceptor; // what plain JavaScript may do
    await expect(clientOf(server.url, { interceptors: [none] }).callTool("s", "t")).rejects.toThrow("next(request)");
    expect(server.runs.t).toBe(1);
  });

  it("see who calls, and cannot change it", async () => {
    const server = await shop({ t: {} });
    const runtime = { context: { user: "u1" }, threadId: "th", toolCallId: "tc" };
    const ids: string[] = [];
    const look: Interceptor = (request, next) => {
      ids.push(request.callId);
      expect(request.runtime).toEqual(runtime);
      expect(() => Object.assign(request.runtime, { threadId: "x" })).toThrow(TypeError);
      expect(() => Object.assign(request, { server: "x" })).toThrow(TypeError);
      return next(request);
    };
    const client = clientOf(server.url, { interceptors: [look] });
    await client.callTool("s", "t", {}, { runtime });
    await client.callTool("s", "t", {}, { runtime });
    expect(new Set(ids).size).toBe(2);
    expect(runtime.threadId).toBe("th");
  });

  it("get errors of the inside to handle, and their own reach the caller as they are", async () => {
    const own = new RangeError("mine");
    const thrower: Interceptor = () => {
      throw own;
    };
    const rescue: Interceptor = async (request, next) => {
      try {
        return await next(request);
      } catch (error) {
        expect(error).toBe(own);
        return mine;
      }
    };
    expect(text(await clientOf("http://127.0.0.1:9", { interceptors: [rescue, thrower] }).callTool("s", "t"))).toBe(
      "mine",
    );
    await expect(clientOf("http://127.0.0.1:9", { interceptors: [thrower] }).callTool("s", "t")).rejects.toBe(own);
    const wrap: Interceptor = (request, next) =>
      next(request).catch((cause: unknown) => {
        throw new Error("wrapped", { cause });
      });
    await expect(clientOf("http://127.0.0.1:9", { interceptors: [wrap] }).callTool("s", "t")).rejects.toMatchObject({
      message: "wrapped",
      cause: { code: "unreachable" },
    });
  });

  it("keep many calls at once apart", async () => {
    const server = await shop({ t: { work: (_, args) => `${args.n} ${args.id}` } });
    const tag: Interceptor = (request, next) => next(request.with({ args: { ...request.args, id: request.callId } }));
    const client = clientOf(server.url, { interceptors: [tag] });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => client.callTool("s", "t", { n })));
    const texts = answers.map(text);
    expect(texts.map((one) => one.split(" ")[0])).toEqual(Array.from({ length: 30 }, (_, n) => String(n)));
    expect(new Set(texts.map((one) => one.split(" ")[1])).size).toBe(30);
  });

  it("must be functions", () => {
    const wrong = (interceptors: unknown) => () => createClient({ servers: {}, interceptors: interceptors as never });
    expect(wrong([{}])).toThrow(/interceptors\[0\] must be a function/);
    expect(wrong(() => mine)).toThrow(/interceptors must be a list of functions/);
  });
});

describe("an interceptor that hangs", () => {
  it("does not keep a call that is cancelled, whether it went on or not", async () => {
    const server = await shop({ t: {} });
    for (const [hang, maybeExecuted] of [
      [forever, false],
      [async (request, next) => next(request).then(forever), true],
    ] as [Interceptor, boolean][]) {
      const cancel = new AbortController();
      const call = clientOf(server.url, { interceptors: [hang] }).callTool("s", "t", {}, { signal: cancel.signal });
      const failed = expect(call).rejects.toMatchObject({ code: "cancelled", maybeExecuted });
      setTimeout(() => cancel.abort(), 300);
      await failed;
    }
  });

  it("does not keep the client from closing", async () => {
    const client = clientOf("http://127.0.0.1:9", { interceptors: [forever] });
    const failed = expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "closed" });
    await client.close();
    await failed;
  });

  it("is ended by the call's own limit, and told so by its signal", async () => {
    let told: AbortSignal | undefined;
    const hang: Interceptor = (request) => {
      told = request.signal;
      return forever();
    };
    const client = clientOf("http://127.0.0.1:9", { interceptors: [hang] });
    await expect(client.callTool("s", "t", {}, { timeoutMs: 60 })).rejects.toMatchObject({
      code: "timeout",
      maybeExecuted: false,
      message: expect.stringContaining("interceptors"),
    });
    expect(told?.aborted).toBe(true);
  });

  it("has its clock stand still while the tool works and reports", async () => {
    const server = await modern();
    onTestFinished(() => server.kill());
    const pass: Interceptor = async (request, next) => next(request);
    const client = clientOf(server.url, { interceptors: [pass] });
    const work = client.callTool("s", "work", { label: "done", steps: 8, ms: 250 }, { timeoutMs: 1_500 });
    expect(text(await work)).toBe("done");
  });
});

describe("next()", () => {
  it("called after the call has ended sends nothing and says so", async () => {
    const server = await shop({ t: {} });
    let late: Promise<unknown> | undefined;
    const early: Interceptor = async (request, next) => {
      late = new Promise((resolve) => setTimeout(resolve, 50)).then(() => next(request));
      late.catch(() => {});
      return mine;
    };
    expect(text(await clientOf(server.url, { interceptors: [early] }).callTool("s", "t"))).toBe("mine");
    await expect(late).rejects.toMatchObject({ name: "ConfigError", code: "call_settled", maybeExecuted: false });
    expect(server.runs.t).toBeUndefined();
  });

  it("that nobody awaits is cancelled with the call, and harms nothing", async () => {
    let gone = false;
    const server = await shop({ t: { work: () => forever() } });
    const loser: Interceptor = async (request, next) => {
      void next(request);
      request.signal.addEventListener("abort", () => {
        gone = true;
      });
      while (server.runs.t !== 1) await new Promise((resolve) => setTimeout(resolve, 10));
      return mine;
    };
    await clientOf(server.url, { interceptors: [loser] }).callTool("s", "t");
    expect(gone).toBe(true);
  });
});

describe("what a model sees", () => {
  it("may be changed by interceptors, the outermost last; names stay, and calls go where they went", async () => {
    const { url } = await shop({ t: {} });
    const add = (word: string): Interceptor =>
      Object.assign(((request, next) => next(request)) satisfies Interceptor, {
        catalog: (tool: Parameters<NonNullable<Interceptor["catalog"]>>[0]) => ({
          ...tool,
          description: `${tool.description}${word}`,
          name: "hijacked",
          wireName: "hijacked",
        }),
      });
    const client = clientOf(url, { interceptors: [add("outer"), add("inner ")] });
    const [tool] = await client.listTools();
    expect(tool).toMatchObject({ name: "mcp_s_t", wireName: "t", description: "inner outer" });
    expect(text(await client.dispatch("mcp_s_t"))).toBe("run 1");
  });
});

describe("a tool's definition", () => {
  it("is at hand, also before anybody asked for the catalog", async () => {
    const { url } = await shop({ t: { annotations: { readOnlyHint: true } } });
    const seen: unknown[] = [];
    const look: Interceptor = async (request, next) => {
      seen.push((await request.definition())?.annotations, await request.with({ name: "nope" }).definition());
      return next(request);
    };
    await clientOf(url, { interceptors: [look] }).callTool("s", "t");
    expect(seen).toEqual([{ readOnlyHint: true }, undefined]);
  });
});

describe("types", () => {
  it("carry the runtime from the client to its interceptors and calls", () => {
    type Mine = ToolRuntime<{ userId: string }, { count: number }>;
    const client = createClient<Mine>({
      servers: {},
      interceptors: [
        (request, next) => {
          expectTypeOf(request.runtime.context).toEqualTypeOf<{ userId: string } | undefined>();
          expectTypeOf(request.runtime.state).toEqualTypeOf<{ count: number } | undefined>();
          expectTypeOf(request.with({}).runtime).toEqualTypeOf<Mine>();
          return next(request);
        },
      ],
    });
    expectTypeOf(client.callTool).parameter(3).toExtend<{ runtime?: Mine } | undefined>();
    expectTypeOf(client.callTool).returns.resolves.toEqualTypeOf<ToolResult>();
    const typed: Interceptor<Mine, "extra"> = async () => "extra";
    const inferred = createClient({ servers: {}, interceptors: [typed] });
    expectTypeOf(inferred.callTool).returns.resolves.toEqualTypeOf<ToolResult | "extra">();
  });
});
