import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { textsFor, yuan } from "./index.ts";

describe("money", () => {
  it("is written with two decimals, whatever the amount of fen", () => {
    expect([0, 1, 10, 99, 100, 29_900, 249_900, 50_001].map(yuan)).toEqual([
      "0.00",
      "0.01",
      "0.10",
      "0.99",
      "1.00",
      "299.00",
      "2499.00",
      "500.01",
    ]);
    fc.assert(fc.property(fc.nat(), (fen) => Math.round(Number(yuan(fen)) * 100) === fen));
  });
});

describe("the language", () => {
  it("follows the tag of a request; anything unknown is Chinese", () => {
    for (const tag of ["en", "en-GB", "EN-us,zh;q=0.1"]) expect(textsFor(tag).lang).toBe("en");
    for (const tag of ["zh", "zh-CN", "fr", "", null, undefined]) expect(textsFor(tag).lang).toBe("zh");
  });
});
