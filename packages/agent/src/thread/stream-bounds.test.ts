import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boundValue, cutText, splitText } from "./stream-bounds.ts";
import { withoutRedaction } from "./stream-shape.ts";

describe("a value made fit for an event", () => {
  it("is the same where it is small, and JSON within the budget where it is not", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.integer({ min: 64, max: 2_000 }), (value, budget) => {
        const { value: bounded, truncated } = boundValue(value, budget);
        const text = JSON.stringify(bounded);
        expect(JSON.parse(text)).toEqual(bounded);
        expect(text.length).toBeLessThan(budget * 8 + 400); // escapes and the deepest brackets
        if (!truncated) expect(bounded).toEqual(JSON.parse(JSON.stringify(value)));
        if (JSON.stringify(value).length * 2 + 64 < budget) expect(truncated).toBe(false);
      }),
    );
  });

  it("never throws for what JSON cannot carry", () => {
    const cycle: Record<string, unknown> = { n: Number.NaN, big: 10n, bytes: new Uint8Array(3), set: new Set([1]) };
    cycle.self = cycle;
    Object.defineProperty(cycle, "bad", { enumerable: false, get: () => Promise.reject(new Error("x")) });
    expect(boundValue(cycle, 1_000)).toEqual({
      value: { n: "NaN", big: "10", bytes: "[3 bytes]", set: [1], self: "[cycle]" },
      truncated: false,
    });
    const getter = {
      get boom() {
        throw new Error("x");
      },
    };
    expect(boundValue(getter, 100)).toEqual({ value: "[no JSON]", truncated: true });
    let deep: unknown = 1;
    for (let i = 0; i < 10_000; i += 1) deep = [deep];
    expect(boundValue(deep, 100_000).truncated).toBe(true);
  });

  it("never has half a character", () => {
    expect(cutText("a😀b", 2)).toEqual({ value: "a", truncated: true });
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 40 }), fc.integer({ min: 2, max: 9 }), (text, length) => {
        const parts = splitText(text, length);
        expect(parts.join("")).toBe(text);
        expect(parts.every((part) => part.length <= length && !/\p{Surrogate}/u.test(part))).toBe(true);
      }),
    );
  });
});

describe("arguments edited by somebody who could not see all of them", () => {
  it("keep the original in the places that were left as they were shown", () => {
    const original = { to: "o1", auth: { token: "s3cret", user: "ann" }, list: ["s3cret", "b"] };
    const shown = { to: "o1", auth: { token: "[redacted]", user: "ann" }, list: ["[redacted]", "b"] };
    const edited = { to: "o2", auth: { token: "[redacted]", user: "eve" }, list: ["[redacted]", "c"], more: 1 };
    expect(withoutRedaction(original, shown, edited)).toEqual({
      to: "o2",
      auth: { token: "s3cret", user: "eve" },
      list: ["s3cret", "c"],
      more: 1,
    });
    expect(withoutRedaction(original, shown, { to: "o2" })).toEqual({ to: "o2" });
  });
});
