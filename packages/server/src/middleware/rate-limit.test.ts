import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { alice, ask, call, root, said } from "../../test/ask.ts";
import type { Caller } from "../index.ts";
import { createServer } from "../index.ts";
import { RateLimitError, type RateLimitOptions, rateLimit } from "./rate-limit.ts";
import type { ServerRequest } from "./request.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const from = (subject: string): ServerRequest =>
  ({ method: "tools/call", caller: { subject, scopes: [], claims: {} } satisfies Caller }) as unknown as ServerRequest; // all it reads
const passes = async (limit: ReturnType<typeof rateLimit>, who: string): Promise<boolean> => {
  try {
    await limit(from(who), async () => ({}));
    return true;
  } catch (error) {
    if (error instanceof RateLimitError) return false;
    throw error;
  }
};

describe("rateLimit", () => {
  it("allows so many at once, then as they come back", async () => {
    const limit = rateLimit({ limit: 3, windowMs: 3_000 });
    const burst = [];
    for (let i = 0; i < 5; i++) burst.push(await passes(limit, "a"));
    expect(burst).toEqual([true, true, true, false, false]);
    vi.advanceTimersByTime(1_000);
    expect([await passes(limit, "a"), await passes(limit, "a")]).toEqual([true, false]);
    vi.advanceTimersByTime(60_000);
    expect([
      await passes(limit, "a"),
      await passes(limit, "a"),
      await passes(limit, "a"),
      await passes(limit, "a"),
    ]).toEqual([true, true, true, false]);
  });
  it("counts each caller alone", async () => {
    const limit = rateLimit({ limit: 1, windowMs: 1_000 });
    expect([await passes(limit, "a"), await passes(limit, "b"), await passes(limit, "a")]).toEqual([true, true, false]);
  });
  it("remembers a bounded number of callers, the latest", async () => {
    const limit = rateLimit({ limit: 1, windowMs: 60_000, maxKeys: 100 });
    for (let i = 0; i < 10_000; i++) await passes(limit, `caller ${i}`);
    expect(await passes(limit, "caller 9999")).toBe(false);
    expect(await passes(limit, "caller 0")).toBe(true);
  });
  it("does not drift over many windows", async () => {
    const limit = rateLimit({ limit: 7, windowMs: 1_000 });
    let allowed = 0;
    for (let ms = 0; ms < 100_000; ms += 10) {
      allowed += (await passes(limit, "a")) ? 1 : 0;
      vi.advanceTimersByTime(10);
    }
    expect(allowed).toBeGreaterThanOrEqual(700);
    expect(allowed).toBeLessThanOrEqual(710);
  });
  it.each(["modern", "legacy"] as const)("says when to try again (%s)", async (era) => {
    vi.useRealTimers();
    const server = createServer({ name: "test", version: "1", logSink: () => undefined })
      .use(rateLimit({ limit: 1, windowMs: 60_000 }))
      .tool("t", {}, () => "done")
      .prompt("p", {}, () => "p");
    expect(said(await call(server, "t", {}, { era, caller: alice }))).toBe("done");
    const refused = await call(server, "t", {}, { era, caller: alice });
    expect(said(refused)).toMatch(/^Too many requests: 1 in 60 s are allowed; try again in [1-9]\d? s$/);
    expect(refused.result).toMatchObject({
      isError: true,
      structuredContent: { code: "rate_limited", retryAfterMs: expect.any(Number) },
    });
    expect((await ask(server, "prompts/get", { name: "p" }, { era, caller: alice })).error?.data).toMatchObject({
      code: "rate_limited",
    });
    expect(said(await call(server, "t", {}, { era, caller: root }))).toBe("done");
    expect((await ask(server, "tools/list", {}, { era, caller: alice })).result?.tools).toHaveLength(1);
  });
  it.each([
    { limit: 0, windowMs: 1 },
    { limit: 1, windowMs: -1 },
    { limit: Number.NaN, windowMs: 1 },
  ] as RateLimitOptions[])("refuses the limit %o", (options) =>
    expect(() => rateLimit(options)).toThrow(/must be positive/),
  );
});
