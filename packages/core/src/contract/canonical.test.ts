import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, type Json } from "../json.ts";

/** Every JSON value there is, with the keys and numbers that are done wrong most often. */
const key = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("__proto__", "1", "10", "9", "-1", "", "é", "\ufb33", "😀"),
);
const json: fc.Arbitrary<Json> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(null, true, false, -0, 1e21, 1e-7, 5e-324),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.string({ unit: "grapheme" }),
    fc.uuid(),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 5 }).map(Object.fromEntries),
  ),
})).value as fc.Arbitrary<Json>;

/** The same value with its keys put in another order. */
function shuffled(value: Json): Json {
  if (Array.isArray(value)) return value.map(shuffled);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, item]) => [name, shuffled(item)]),
  );
}

/** RFC 8785 said a second time, as plainly as it can be. */
function plainly(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(plainly).join()}]`;
  if (value === null || typeof value !== "object") return value === 0 ? "0" : JSON.stringify(value);
  const units = (text: string): number[] => Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
  const before = (a: string, b: string): number => {
    const [left, right] = [units(a), units(b)];
    const at = left.findIndex((unit, i) => unit !== right[i]);
    return at === -1 ? left.length - right.length : (left[at] ?? 0) - (right[at] ?? -1);
  };
  const keys = Reflect.ownKeys(value).map(String).sort(before);
  return `{${keys.map((name) => `${JSON.stringify(name)}:${plainly(value[name] as Json)}`).join()}}`;
}

describe("canonical JSON", () => {
  it("is what RFC 8785 says", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonicalJson(value)).toBe(plainly(value));
      }),
    );
  });
  it("says what the value says, whatever order its keys had and however often it is written", () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(shuffled(value))).toBe(text);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
  it("is the same for two values only when they are", () => {
    fc.assert(
      fc.property(json, json, (a, b) => {
        const same = canonicalJson(a) === canonicalJson(b);
        expect(same).toBe(plainly(a) === plainly(b));
      }),
    );
  });
  it("writes a number as its shortest form, and minus zero as zero", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (n) => {
        expect(canonicalJson(n)).toBe(String(n === 0 ? 0 : n));
        expect(Number(canonicalJson([n]).slice(1, -1))).toBe(n === 0 ? 0 : n);
      }),
    );
  });
  it("keeps a key named __proto__ a key", () => {
    const value = JSON.parse('{"a":{"__proto__":{"b":1}}}');
    expect(canonicalJson(value)).toBe('{"a":{"__proto__":{"b":1}}}');
    expect(({} as { b?: number }).b).toBeUndefined();
  });
  it.each([
    ["NaN", Number.NaN],
    ["Infinity", Number.POSITIVE_INFINITY],
    ["a bigint", 1n],
    ["a symbol", Symbol("s")],
    ["an invalid Date", new Date(Number.NaN)],
    ["binary data", new Uint8Array(2)],
    ["half a surrogate pair", "a\ud800b"],
  ])("refuses %s wherever it is, naming the path", (found, value) => {
    for (const whole of [{ a: [0, value] }, { a: [0, { b: value }] }]) {
      const path = expect.stringMatching(/^value\.a\[1\](\.b)? /);
      expect(() => canonicalJson(whole)).toThrow(expect.objectContaining({ code: "not_json", message: path }));
      expect(() => canonicalJson(whole)).toThrow(found);
    }
  });
  it("refuses half a surrogate pair in a key, and a cycle", () => {
    expect(() => canonicalJson({ "\udc00": 1 })).toThrow("half a surrogate pair");
    const cycle: Record<string, unknown> = {};
    cycle.self = { cycle };
    expect(() => canonicalJson(cycle)).toThrow("a cycle");
    const shared = { n: 1 };
    expect(canonicalJson([shared, shared])).toBe('[{"n":1},{"n":1}]');
  });
});
