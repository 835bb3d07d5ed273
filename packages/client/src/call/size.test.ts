import { jsonSize } from "@tenon/core/internal";
import { describe, expect, it } from "vitest";
import { deeperThan } from "./size.ts";

describe("sizes", () => {
  it("are about those of the JSON text", () => {
    const value = { text: "héllo", list: [1, 2, null, true], nested: { a: "b".repeat(1_000) } };
    const real = Buffer.byteLength(JSON.stringify(value));
    expect(Math.abs(jsonSize(value, 10_000) - real)).toBeLessThan(40);
  });
  it("are counted up to the limit only", () => {
    const size = jsonSize(
      Array.from({ length: 1_000 }, () => "x".repeat(1_000)),
      5_000,
    );
    expect(size).toBeGreaterThan(5_000);
    expect(size).toBeLessThan(10_000);
  });
  it("and depths survive what recursion would not", () => {
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    expect(deeperThan(deep, 200)).toBe(true);
    expect(jsonSize(deep, 1_000_000)).toBeGreaterThan(100_000);
    expect(deeperThan({ a: [{ b: 1 }] }, 3)).toBe(false);
  });
});
