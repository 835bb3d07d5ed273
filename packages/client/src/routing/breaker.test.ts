import { AuthError, ConnectionError, ContractError, ExecutionError, ProtocolError } from "@tenon/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { BreakerState } from "../types/routing.ts";
import { createBreaker, isSick } from "./breaker.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "performance"] }));
afterEach(() => void vi.useRealTimers());

const sick = new ConnectionError("away", { code: "unreachable" });
const cancelled = new ConnectionError("not wanted", { code: "cancelled" });

function scene(options: Parameters<typeof createBreaker>[0] = {}) {
  const states: BreakerState[] = [];
  const breaker = createBreaker(options, (state) => states.push(state));
  const fail = (error: unknown = sick) => breaker.run(() => Promise.reject(error)).catch(() => {});
  const failTimes = async (times: number) => {
    for (let n = 0; n < times; n++) await fail();
  };
  return { breaker, states, fail, failTimes, succeed: () => breaker.run(async () => "well") };
}

describe("a breaker with its own numbers", () => {
  it("opens with the 51st failure within a minute, and not with the 50th", async () => {
    const { breaker, failTimes } = scene();
    await failTimes(50);
    expect([breaker.state, breaker.admits]).toEqual(["closed", true]);
    await failTimes(1);
    expect([breaker.state, breaker.admits]).toEqual(["open", false]);
    expect(breaker.retryAt).toBe(Date.now() + 300_000);
  });

  it("forgets failures that are older than a minute, and none for successes in between", async () => {
    const { breaker, failTimes, succeed } = scene();
    await failTimes(40);
    vi.advanceTimersByTime(60_001);
    await failTimes(40);
    await succeed();
    expect(breaker.state).toBe("closed");
    await failTimes(11);
    expect(breaker.state).toBe("open");
  });

  it("lets through what it says it admits, also when the clock ticks while it opens", async () => {
    const { breaker, fail, succeed } = scene({ failures: 0, openMs: 3 });
    const before = Date.now();
    let at = before;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => at++);
    await fail();
    clock.mockImplementation(() => at);
    for (at = before; !breaker.admits; at++);
    await expect(succeed()).resolves.toBe("well");
    clock.mockRestore();
  });

  it("lets one call through after five minutes, which closes it, or opens it for five more", async () => {
    const { breaker, states, failTimes, fail, succeed } = scene();
    await failTimes(51);
    vi.advanceTimersByTime(299_999);
    expect(breaker.admits).toBe(false);
    vi.advanceTimersByTime(1);
    expect([breaker.state, breaker.admits]).toEqual(["half-open", true]);
    await fail();
    expect([breaker.state, breaker.admits]).toEqual(["open", false]);
    vi.advanceTimersByTime(300_000);
    let answer = () => {};
    const tried = breaker.run(() => new Promise<void>((resolve) => (answer = resolve)));
    expect([breaker.state, breaker.admits]).toEqual(["half-open", false]);
    answer();
    await tried;
    expect([breaker.state, breaker.admits, breaker.retryAt]).toEqual(["closed", true, undefined]);
    await failTimes(50);
    expect(breaker.state).toBe("closed");
    await succeed();
    expect(states).toEqual(["open", "half-open", "open", "half-open", "closed"]);
  });

  it("is none the wiser for a try that its caller gave up: the next call is the next try", async () => {
    const { breaker, failTimes, fail, succeed } = scene();
    await failTimes(51);
    vi.advanceTimersByTime(300_000);
    await fail(cancelled);
    expect([breaker.state, breaker.admits]).toEqual(["half-open", true]);
    await succeed();
    expect(breaker.state).toBe("closed");
  });
});

describe("the rule of shares", () => {
  it("opens when more than the share failed, once there were enough requests", async () => {
    const { breaker, failTimes, succeed } = scene({ rate: { threshold: 0.5, minimumCalls: 10 } });
    await failTimes(9);
    expect(breaker.state).toBe("closed");
    vi.advanceTimersByTime(70_000);
    for (let n = 0; n < 10; n++) await succeed();
    await failTimes(10);
    expect(breaker.state).toBe("closed");
    await failTimes(1);
    expect(breaker.state).toBe("open");
  });

  it("stands beside the count, which opens as before", async () => {
    const { breaker, failTimes, succeed } = scene({ failures: 3, rate: { threshold: 0.9 } });
    for (let n = 0; n < 100; n++) await succeed();
    await failTimes(4);
    expect(breaker.state).toBe("open");
  });
});

describe("what counts as a failure of a replica", () => {
  const status = (code: number) => new ConnectionError("http", { code: "http_error", data: { status: code } });
  it.each([
    ["cannot be reached", sick, true],
    ["was lost", new ConnectionError("lost", { code: "lost" }), true],
    ["gave no answer in time", new ConnectionError("slow", { code: "timeout" }), true],
    ["answered 500", status(500), true],
    ["answered 503", status(503), true],
    ["answered against the protocol", new ProtocolError("bad", { code: "bad_answer" }), true],
    ["answered 404", status(404), false],
    ["was asked too often", status(429), false],
    ["refused the token", new AuthError("401", { code: "unauthorized" }), false],
    ["refused for want of rights", new AuthError("403", { code: "forbidden" }), false],
    ["refused the context", new ContractError("no", { code: "missing_context_field" }), false],
    ["refused the request", new ProtocolError("no", { code: "rpc_error", data: { code: -32_602 } }), false],
    ["ran a tool that failed", new ExecutionError("no", { code: "tool_error" }), false],
    ["was not waited for", cancelled, false],
    ["threw something of another kind", new Error("?"), false],
  ])("one that %s", (_, error, expected) => {
    expect(isSick(error)).toBe(expected);
  });
});
