import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { deadline } from "./deadlines.ts";

describe("deadlines that share a timer", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  it("come each at its own time, whichever was set first", async () => {
    const rung: string[] = [];
    for (const [name, ms] of [
      ["late", 5_000],
      ["early", 100],
      ["middle", 1_000],
    ] as const) {
      deadline(ms, () => rung.push(name));
    }
    await vi.advanceTimersByTimeAsync(99);
    expect(rung).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(rung).toEqual(["early"]);
    await vi.advanceTimersByTimeAsync(900);
    expect(rung).toEqual(["early", "middle"]);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(rung).toEqual(["early", "middle", "late"]);
  });

  it("do not come when they were taken back, and leave the others alone", async () => {
    const rung: string[] = [];
    const takeBack = deadline(50, () => rung.push("taken back"));
    deadline(60, () => rung.push("kept"));
    takeBack();
    await vi.advanceTimersByTimeAsync(100);
    expect(rung).toEqual(["kept"]);
  });

  it("may be set by one that comes", async () => {
    const rung: string[] = [];
    deadline(10, () => void deadline(10, () => rung.push("second")));
    await vi.advanceTimersByTimeAsync(25);
    expect(rung).toEqual(["second"]);
  });
});
