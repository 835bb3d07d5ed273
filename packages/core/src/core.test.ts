import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConnectionError, deserializeError, isRetryable, serializeError } from "./errors.ts";
import { canonicalJson, digest, toJson } from "./json.ts";
import { checkOptions, didYouMean } from "./options.ts";

describe("errors", () => {
  it("survive being stored as JSON", () => {
    const error = new ConnectionError("gone", { code: "lost", server: "order", maybeExecuted: true, data: { n: 1 } });
    const back = deserializeError(JSON.parse(JSON.stringify(serializeError(error))));
    expect(back).toBeInstanceOf(ConnectionError);
    expect(back).toMatchObject({ message: "gone", code: "lost", server: "order", maybeExecuted: true, data: { n: 1 } });
  });
  it("are retryable only when the call surely did not run", () => {
    expect(isRetryable(new ConnectionError("x", { code: "unreachable", retryable: true }))).toBe(true);
    expect(isRetryable(new ConnectionError("x", { code: "lost", retryable: true, maybeExecuted: true }))).toBe(false);
    expect(isRetryable(new Error("x"))).toBe(false);
  });
});

describe("toJson", () => {
  it("carries dates, URLs, sets and maps", () => {
    const value = {
      at: new Date(0),
      url: new URL("http://a/b"),
      set: new Set([1]),
      map: new Map([["k", true]]),
      gone: undefined,
    };
    expect(toJson(value)).toEqual({ at: "1970-01-01T00:00:00.000Z", url: "http://a/b", set: [1], map: { k: true } });
  });
  it("has no -0, as what is read back has none", () => {
    expect(toJson([-0, { n: -0 }])).toEqual([0, { n: 0 }]);
  });
  it.each([
    ["NaN", { a: [{ n: Number.NaN }] }, "value.a[0].n is NaN"],
    ["a bigint", { n: 1n }, "value.n is a bigint"],
    ["bytes", { b: new Uint8Array(1) }, "value.b is binary data"],
    ["a numeric map", { m: new Map([[1, 2]]) }, "value.m is a Map"],
  ])("refuses %s and names the path", (_, value, message) => {
    expect(() => toJson(value)).toThrow(message);
  });
  it("refuses a cycle but not the same object twice", () => {
    const twice = { n: 1 };
    expect(toJson({ a: twice, b: twice })).toEqual({ a: { n: 1 }, b: { n: 1 } });
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    expect(() => toJson(cycle)).toThrow("value.self is a cycle");
  });
  it("keeps a key named __proto__ a key", () => {
    const json = toJson(JSON.parse('{"__proto__":{"admin":true}}')) as Record<string, unknown>;
    expect(Object.keys(json)).toEqual(["__proto__"]);
    expect(({} as Record<string, unknown>).admin).toBeUndefined();
  });
});

describe("canonical JSON", () => {
  it("sorts keys at every depth, so equal values have equal digests", () => {
    expect(canonicalJson({ b: [{ d: 1, c: "é" }], a: 1e21 })).toBe('{"a":1e+21,"b":[{"c":"é","d":1}]}');
    expect(digest({ a: 1, b: 2 })).toBe(digest({ b: 2, a: 1 }));
  });
  it("is what RFC 8785 shows", () => {
    const text = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001, -0],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`;
    expect(canonicalJson(JSON.parse(text))).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27,0],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
    const keys = { "€": 1, "\r": 2, "\ufb33": 3, "1": 4, "😀": 5, "\u0080": 6, ö: 7 };
    expect(Object.keys(JSON.parse(canonicalJson(keys)))).toEqual(["1", "\r", "\u0080", "ö", "€", "😀", "\ufb33"]);
    expect(canonicalJson(keys)).toMatch(/^\{"\\r":2,"1":4,"\u0080":6/);
  });
  it("means the same value, does not depend on the order of keys, and is the same when done again", () => {
    const shuffled = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffled);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, item]) => [key, shuffled(item)]),
      );
    };
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme" }), (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(JSON.parse(text))).toBe(text);
        expect(canonicalJson(shuffled(value))).toBe(text);
      }),
    );
  });
  it("writes every number so that it is read as the same number", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (n) => {
        expect(JSON.parse(canonicalJson([n]))[0]).toBe(n || 0);
        expect(canonicalJson([n])).toBe(`[${String(n || 0)}]`);
      }),
    );
  });
  it("refuses half a surrogate pair, which cannot be signed, and names the place", () => {
    expect(() => canonicalJson({ a: ["x\ud800"] })).toThrow("value.a[0] is a text with half a surrogate pair");
    expect(() => canonicalJson({ "\udc00": 1 })).toThrow("half a surrogate pair");
    expect(digest({ a: "x\ud800" })).toHaveLength(43);
  });
});

describe("options", () => {
  it("name the key that was probably meant", () => {
    expect(() => checkOptions({ onElicitaiton: 1 }, ["onElicitation", "onLog"], "createClient(options)")).toThrow(
      'createClient(options) has no option "onElicitaiton"; did you mean "onElicitation"?',
    );
  });
  it("list the known ones when nothing is close", () => {
    for (const [given, shown] of [
      [undefined, "nothing"],
      [null, "null"],
      ["secret", "type string"],
      [[], "a list"],
    ]) {
      const wrong = `listen(options) must be an object, got`;
      const check = () => checkOptions(given as object, ["port"], "listen(options)");
      expect(check).toThrow(
        expect.objectContaining({ code: "invalid_option", message: expect.stringContaining(wrong) }),
      );
      expect(check).toThrow(String(shown));
      expect(check).not.toThrow("secret");
    }
    expect(() => checkOptions({ zzz: 1 }, ["port", "host"], "listen(options)")).toThrow("known options: port, host");
  });
  it("notice two letters that changed places, and a word that was not written to its end", () => {
    const known = ["port", "timeoutMs", "readOnlyHint"];
    expect(["prot", "time", "readOnly"].map((given) => didYouMean(given, known))).toEqual(known);
    expect(didYouMean("time", ["timeoutMs", "timeoutText"])).toBeUndefined();
  });
  it("do not guess wildly", () => expect(didYouMean("port", ["transport", "banner"])).toBeUndefined());
});
