import { describe, expect, it } from "vitest";
import { waitOf } from "./follow.ts";

describe("the wait between two looks at a task", () => {
  it.each([
    [2_000, 0, 1_600],
    [2_000, 0.5, 2_000],
    [2_000, 1, 2_400],
    [1, 0, 100],
    [1e9, 0.5, 60_000],
    [60_000, 1, 60_000],
  ])("is what the server wants (%i ms), a fifth more or less, within bounds", (pollIntervalMs, random, ms) => {
    expect(waitOf({ pollIntervalMs }, () => random)).toBeCloseTo(ms);
  });
  it("is a second where the server does not say", () => {
    expect(waitOf({}, () => 0.5)).toBe(1_000);
  });
});
