import { ConnectionError } from "@tenon/core";
import { describe, expect, it } from "vitest";
import { clientOf, shop } from "../../test/shop.ts";
import { type Interceptor, renderText, type ToolResult } from "../index.ts";
import { rateLimit } from "./rate-limit.ts";
import { retry } from "./retry.ts";

const quick = { initialDelayMs: 1, maxDelayMs: 5 };
const text = (result: ToolResult) => renderText(result.content);

/** Fails the first `times` sendings with this error: before they leave, or after the server has carried them out. */
function failing(times: number, error: ConnectionError, when: "before" | "after" = "before") {
  let left = times;
  const interceptor: Interceptor = async (request, next) => {
    if (when === "before" && left-- > 0) throw error;
    const outcome = await next(request);
    if (when === "after" && left-- > 0) throw error;
    return outcome;
  };
  return interceptor;
}
const notSent = (data?: unknown) =>
  new ConnectionError("down", { code: "unreachable", retryable: true, maybeExecuted: false, data });
const lost = new ConnectionError("lost", { code: "lost", retryable: true, maybeExecuted: true });

describe("retry", () => {
  it("sends a call again that surely did not run, any tool's", async () => {
    const server = await shop({ pay: {} });
    const client = clientOf(server.url, { interceptors: [retry(quick), failing(2, notSent())] });
    expect(text(await client.callTool("s", "pay"))).toBe("run 1");
  });

  it("never repeats a call that may have run, unless its server says that a second run does no harm", async () => {
    const server = await shop({
      pay: { annotations: { destructiveHint: true } },
      look: { annotations: { readOnlyHint: true } },
      put: { annotations: { idempotentHint: true } },
    });
    const open = () => clientOf(server.url, { interceptors: [retry(quick), failing(1, lost, "after")] });
    await expect(open().callTool("s", "pay")).rejects.toBe(lost);
    expect(text(await open().callTool("s", "look"))).toBe("run 2");
    expect(text(await open().callTool("s", "put"))).toBe("run 2");
    expect(server.runs).toEqual({ pay: 1, look: 2, put: 2 });
  });

  it("gives up after so many sendings, with the last error as it came", async () => {
    const server = await shop({ t: {} });
    const error = notSent();
    let sent = 0;
    const count: Interceptor = (request, next) => {
      sent++;
      return next(request);
    };
    const client = clientOf(server.url, {
      interceptors: [retry({ ...quick, maxAttempts: 4 }), count, failing(9, error)],
    });
    await expect(client.callTool("s", "t")).rejects.toBe(error);
    expect(sent).toBe(4);
  });

  it("leaves alone what is no matter of time", async () => {
    const server = await shop({ t: { annotations: { readOnlyHint: true }, work: () => ({ isError: true }) } });
    const client = clientOf(server.url, { interceptors: [retry(quick)] });
    expect((await client.callTool("s", "t")).isError).toBe(true);
    await expect(client.callTool("s", "nope")).rejects.toMatchObject({ code: "unknown_tool" });
    expect(server.runs.t).toBe(1);
    const own = new TypeError("bug");
    const bug: Interceptor = () => Promise.reject(own);
    await expect(clientOf(server.url, { interceptors: [retry(quick), bug] }).callTool("s", "t")).rejects.toBe(own);
  });

  it("waits as long as the error asks, and not at all when that is too long", async () => {
    const server = await shop({ t: {} });
    const started = performance.now();
    const patient = clientOf(server.url, { interceptors: [retry(quick), failing(1, notSent({ retryAfterMs: 300 }))] });
    await patient.callTool("s", "t");
    expect(performance.now() - started).toBeGreaterThan(290);
    const late = notSent({ retryAfterMs: 60_000 });
    const busy = clientOf(server.url, { interceptors: [retry(quick), failing(1, late)] });
    await expect(busy.callTool("s", "t")).rejects.toBe(late);
    const limit = rateLimit({ limit: 1, windowMs: 200 });
    const limited = clientOf(server.url, { interceptors: [retry(quick), limit] });
    await limited.callTool("s", "t");
    await limited.callTool("s", "t"); // refused at first, with the time of its turn
  });

  it("tries a read-only tool again that asks for it in its own error", async () => {
    const work = (run: number) =>
      run === 1 ? { isError: true, structuredContent: { code: "rate_limited", retryAfterMs: 5 } } : "there";
    const server = await shop({ look: { annotations: { readOnlyHint: true }, work }, pay: { work } });
    const client = clientOf(server.url, { interceptors: [retry(quick)] });
    expect(text(await client.callTool("s", "look"))).toBe("there");
    expect((await client.callTool("s", "pay")).isError).toBe(true);
  });

  it("stops waiting when the caller gives up", async () => {
    const server = await shop({ t: {} });
    const error = notSent({ retryAfterMs: 20_000 });
    const client = clientOf(server.url, { interceptors: [retry(quick), failing(1, error)] });
    const cancel = new AbortController();
    const failed = expect(client.callTool("s", "t", {}, { signal: cancel.signal })).rejects.toMatchObject({
      code: expect.stringMatching("cancelled|unreachable"),
    });
    setTimeout(() => cancel.abort(), 50);
    await failed;
    expect(server.runs.t).toBeUndefined();
  });

  it("refuses numbers that make no sense", () => {
    expect(() => retry({ maxAttempts: 0 })).toThrow("positive");
    expect(() => retry({ maxAtempts: 2 } as object)).toThrow('did you mean "maxAttempts"');
  });
});
