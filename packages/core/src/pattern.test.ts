import { describe, expect, it } from "vitest";
import { isRiskyPattern, testPattern, withinTime } from "./pattern.ts";

describe("a pattern from somewhere else", () => {
  it.each([
    ["^[a-z]+$", "abc", "match"],
    ["^[a-z]+$", "ABC", "no match"],
    ["\\p{Lu}", "Ä", "match"],
    ["^\\-$", "-", "match"], // illegal with `u`, legal by the older rules
    ["(", "x", "invalid"],
    ["a", "a".repeat(100_001), "too long"],
    ["a".repeat(10_001), "a", "invalid"],
  ] as const)("%j and a text give a verdict", (pattern, text, verdict) => {
    expect(testPattern(pattern, text)).toBe(verdict);
  });
  it.each([
    ["(a+)+$", "a"],
    ["(a|aa)+$", "a"],
    ["(a|a)*$", "a"],
    ["^(([a-z])+.)+[A-Z]([a-z])+$", "a"],
    ["(x+x+)+y", "x"],
  ])("%j is stopped instead of holding up the process", (pattern, char) => {
    expect(testPattern(pattern, `${char.repeat(60)}!`)).toBe("too slow");
  });
  it.each(["(a+)+", "(a|aa)*", "((a)+b)*", "(?:a*){2,}", "([^)]+)*", "(?<x>a|b)+"])(
    "%j is seen as risky",
    (pattern) => {
      expect(isRiskyPattern(pattern)).toBe(true);
    },
  );
  it.each(["^[a-z]+$", "(abc)+", "(a+)?", "([+*|])+", "\\(a+\\)+", "^\\d{3}-\\d{4}$", "(?:ab){2}"])(
    "%j is not",
    (pattern) => expect(isRiskyPattern(pattern)).toBe(false),
  );
});

describe("withinTime", () => {
  it("returns what the work returns and throws what it throws, inside itself too", () => {
    expect(withinTime(() => withinTime(() => 1, 1_000) + 1, 1_000)).toBe(2);
    const error = new Error("mine");
    expect(() =>
      withinTime(() => {
        throw error;
      }, 1_000),
    ).toThrow(error);
  });
  it("stops what never ends", () => {
    expect(() =>
      withinTime(() => {
        for (;;);
      }, 30),
    ).toThrow(expect.objectContaining({ code: "too_slow" }));
  });
});
