// A handler that never ends: its caller is told, its signal fires, and a retry does not wait for it for ever.
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { createServer, type LogEntry, type ServerOptions, type TenonServer } from "../src/index.ts";
import { connect } from "../src/testing/index.ts";
import { answering, ask, call, said, value } from "./ask.ts";

const forever = () => new Promise<never>(() => {});
const servers: TenonServer[] = [];
let lines: LogEntry[] = [];
const make = (options: Partial<ServerOptions> = {}): TenonServer => {
  const made = createServer({ name: "slow", version: "1.0.0", logSink: (line) => lines.push(line), ...options });
  servers.push(made);
  return made;
};
afterEach(async () => {
  lines = [];
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

describe("a handler that never ends", () => {
  it("is given up after its timeoutMs, with an error that programs and models can read", async () => {
    const server = make();
    let reason: unknown;
    server.tool("hang", { timeoutMs: 100 }, (_, ctx) => {
      ctx.signal.addEventListener("abort", () => {
        reason = ctx.signal.reason;
      });
      return forever();
    });
    const answer = await call(server, "hang");
    expect(answer.result?.isError).toBe(true);
    expect(said(answer)).toBe(
      "Tool hang took longer than the 0.1 s it may take and was given up. It may have taken effect: check before you repeat it",
    );
    expect(answer.result).toMatchObject({ structuredContent: { code: "timeout", timeoutMs: 100 } });
    expect(reason).toMatchObject({ code: "timeout" });
    expect(lines).toContainEqual(expect.objectContaining({ level: "error", timeoutMs: 100 }));
  });

  it("may look at its signal late", async () => {
    const server = make({ timeoutMs: 50 });
    let aborted: boolean | undefined;
    let looked = () => {};
    const done = new Promise<void>((resolve) => {
      looked = resolve;
    });
    server.tool("late", {}, async (_, ctx) => {
      await sleep(300);
      aborted = ctx.signal.aborted;
      looked();
    });
    expect((await call(server, "late")).result?.isError).toBe(true);
    await done;
    expect(aborted).toBe(true);
  });

  it("is limited for resources and prompts as well, and where it is mounted by its own server's word", async () => {
    const inner = make({ timeoutMs: 50 });
    inner.resource("x://hang", {}, forever).prompt("hang", {}, forever).tool("hang", {}, forever);
    const server = make();
    server.mount("in", inner);
    expect(await ask(inner, "resources/read", { uri: "x://hang" })).toMatchObject({
      error: { code: -32_603, message: expect.stringContaining("took longer than the 0.05 s") },
    });
    expect(await ask(inner, "prompts/get", { name: "hang" })).toMatchObject({ error: { code: -32_603 } });
    expect(said(await call(server, "in_hang"))).toContain("Tool in_hang took longer than the 0.05 s");
  });

  it("holds no idempotent call: the retry gets the same end instead of waiting", async () => {
    const server = make();
    let runs = 0;
    server.tool("pay", { timeoutMs: 200, idempotent: true }, async (_, ctx) => {
      runs++;
      return ctx.step("pay", forever);
    });
    const options = { idempotencyKey: "k1" };
    const [first, second] = await Promise.all([call(server, "pay", {}, options), call(server, "pay", {}, options)]);
    for (const answer of [first, second, await call(server, "pay", {}, options)]) {
      expect(answer.result).toMatchObject({ isError: true, structuredContent: { code: "timeout" } });
    }
    expect(runs).toBe(1);
  });

  it("holds no answer to a question either", async () => {
    const server = make();
    server.tool("ask", { timeoutMs: 200 }, async (_, ctx) => {
      await ctx.elicit("Sure?", z.boolean());
      return forever();
    });
    const asked = await call(server, "ask");
    const retry = { name: "ask", arguments: {}, ...answering(asked, { "Sure?": value(true) }) };
    for (let sent = 0; sent < 2; sent++) {
      const answer = await ask(server, "tools/call", retry);
      expect(answer.result).toMatchObject({ isError: true, structuredContent: { code: "timeout" } });
    }
  });

  it("can do nothing more through its context", async () => {
    const server = make();
    let later: Promise<unknown> | undefined;
    server.tool("late", { timeoutMs: 50 }, (_, ctx) => {
      later = sleep(200).then(() => ctx.step("effect", () => "done"));
      later.catch(() => {});
      return later;
    });
    await call(server, "late");
    await expect(later).rejects.toMatchObject({ code: "call_ended" });
  });
});

describe("a handler's time", () => {
  it.each(["modern", "legacy"] as const)("does not count what a person takes to answer (%s)", async (era) => {
    const server = make();
    server.tool("ask", { timeoutMs: 400 }, async (_, ctx) => (await ctx.elicit("Sure?", z.boolean())).action);
    const elicit = async () => {
      await sleep(900);
      return { action: "accept" as const, content: { value: true } };
    };
    await using client = await connect(server, { era, elicit });
    expect(await client.callTool("ask")).toMatchObject({ content: [{ text: "accept" }] });
  });

  it("is ten minutes unless something else is said, and must be a time", () => {
    const wrong = { code: "time_limit", message: expect.stringContaining("at most 2147483647") };
    for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => make({ timeoutMs })).toThrow(expect.objectContaining(wrong));
      expect(() => make().tool("t", { timeoutMs }, () => "x")).toThrow(expect.objectContaining(wrong));
    }
  });

  it("leaves no timer behind", async () => {
    const server = make();
    server.tool("quick", {}, () => "done");
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    await Promise.all(Array.from({ length: 20 }, () => call(server, "quick")));
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
