import { createHash } from "node:crypto";
import { ContractError, type JsonObject } from "@tenon/core";
import { contextFault } from "@tenon/core/contract";
import { canonicalJson } from "@tenon/core/internal";
import fc from "fast-check";
import { HumanMessage } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { stateContext } from "./state-context.ts";
import { fitValue } from "./state-context-fit.ts";
import { traceIdOf } from "./state-context-trace.ts";

const fit = (schema: JsonObject, value: unknown) => fitValue(schema, schema, value, "f");
const string = { type: "string" };

class Uuid {
  toString(): string {
    return "8c5d2f0e-1b1a-4d5e-9f3a-0123456789ab";
  }
}

describe("a value of the state in the place a schema has for it", () => {
  it.each<[string, JsonObject, unknown, unknown]>([
    ["a Date as text", string, new Date(0), "1970-01-01T00:00:00.000Z"],
    ["a URL as text", string, new URL("https://a.example/b?c"), "https://a.example/b?c"],
    ["a UUID object as text", string, new Uuid(), "8c5d2f0e-1b1a-4d5e-9f3a-0123456789ab"],
    ["a number as text", string, 12.5, "12.5"],
    ["a bigint as text", string, 2n ** 70n, "1180591620717411303424"],
    ["bytes as base64", string, new Uint8Array([1, 2, 255]), "AQL/"],
    ["a bigint as a number", { type: "integer" }, 7n, 7],
    ["bytes as a list", { type: "array", items: { type: "integer" } }, new Uint8Array([1, 2]), [1, 2]],
    ["big bytes as texts", { type: "array", items: string }, new BigInt64Array([5n]), ["5"]],
    ["a Set as a list", { type: "array", items: string }, new Set(["a", 1]), ["a", "1"]],
    ["a Map as an object", { type: "object", additionalProperties: string }, new Map([["k", 1]]), { k: "1" }],
    ["a Map as pairs", { type: "array", items: { type: "array" } }, new Map([["k", 1]]), [["k", 1]]],
    ["null where it may be", { type: ["string", "null"] }, null, null],
    ["plain JSON where nothing is said", {}, { a: [1, "b", null, true] }, { a: [1, "b", null, true] }],
    ["deep inside", { properties: { at: { type: "array", prefixItems: [string] } } }, { at: [new Date(0)] }, { at: ["1970-01-01T00:00:00.000Z"] }], // biome-ignore format: a table
    ["through a reference", { $ref: "#/$defs/d", $defs: { d: string } }, 1, "1"],
    ["in the alternative that fits", { anyOf: [{ type: "null" }, string] }, new Date(0), "1970-01-01T00:00:00.000Z"],
    ["in the alternative its constant names", { oneOf: [{ properties: { k: { const: "a" }, v: string } }, { properties: { k: { const: "b" }, v: { type: "number" } } }] }, { k: "b", v: 1 }, { k: "b", v: 1 }], // biome-ignore format: a table
    ["minus nothing as nothing", { type: "number" }, -0, 0],
  ])("%s", (_, schema, value, expected) => expect(fit(schema, value)).toEqual(expected));

  const cycle: Record<string, unknown> = { a: {} };
  (cycle.a as Record<string, unknown>).b = [cycle];
  it.each<[string, JsonObject, unknown, string]>([
    ["null is never a text", string, null, "f is null; the contract wants string"],
    ["a boolean is no text", string, true, "f is a boolean"],
    ["a text is no number", { type: "number" }, "5", "f is a string; the contract wants number"],
    ["NaN", { type: "number" }, Number.NaN, "f is NaN"],
    ["infinity, also as text", string, Number.NEGATIVE_INFINITY, "f is -Infinity"],
    ["a fraction is no integer", { type: "integer" }, 1.5, "f is 1.5"],
    ["NaN deep inside", { type: "object" }, { a: [{ n: Number.NaN }] }, "f.a[0].n is NaN"],
    ["a cycle", { type: "object" }, cycle, "f.a.b[0] is a cycle"],
    ["an invalid Date", string, new Date("x"), "f is an invalid Date"],
    ["a Date that nobody declared", {}, new Date(0), "f is a Date; the contract wants JSON"],
    ["a Set that nobody declared", { type: "object" }, new Set([1]), "f is a Set"],
    ["a bigint nobody declared", {}, 1n, "f is a bigint"],
    ["a huge bigint as a number", { type: "integer" }, 2n ** 60n, "beyond what JSON numbers hold"],
    ["a function", string, () => 1, "f is a function"],
    ["an object of some class", string, new (class Money {})(), "f is a Money"],
    ["a hole in a list", { type: "array" }, [undefined], "f[0] is undefined"],
    ["a Map with other keys", { type: "object" }, new Map([[1, 2]]), "a Map with keys that are no strings"],
    ["a schema that is only itself", { anyOf: [{ $ref: "#" }] }, 1, "too much to check"],
  ])("refuses: %s", (_, schema, value, message) => {
    expect(() => fit(schema, value)).toThrow(ContractError);
    expect(() => fit(schema, value)).toThrow(message);
  });

  it("leaves every JSON value as it is where the schema says nothing", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        expect(fit({}, value)).toEqual(value);
      }),
    );
  });

  it("either makes JSON or throws a ContractError, whatever it gets", () => {
    const schema = fc.constantFrom<JsonObject>(
      {},
      string,
      { type: ["number", "null"] },
      { type: "array", items: string },
      { anyOf: [string, { type: "object", additionalProperties: { type: "array" } }] },
    );
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
    });
    fc.assert(
      fc.property(schema, anything, (wanted, value) => {
        try {
          const found = fit(wanted, value);
          expect(() => canonicalJson(found)).not.toThrow(TypeError);
          expect(JSON.stringify(found)).not.toContain('"null"');
        } catch (error) {
          expect(error).toMatchObject({ name: expect.stringMatching(/^(ContractError|JsonError)$/) });
        }
      }),
    );
  });
});

describe("the context of a state", () => {
  const contract = z.object({ user_id: z.string(), amount: z.number().optional(), note: z.string().nullish() });

  it("has the declared fields and nothing else", () => {
    const context = stateContext(contract).of({ user_id: 7, amount: 1, secret: "x", messages: [] });
    expect(context).toEqual({ user_id: "7", amount: 1, trace_id: expect.stringMatching(/^[0-9a-f]{32}$/) });
  });

  it("takes from the program what the program knows, whatever the state says", () => {
    const context = stateContext(contract, { fields: { user_id: (_, run) => (run as { userId: string }).userId } });
    expect(context.of({ user_id: "eve" }, { context: { userId: "ann" } })).toMatchObject({ user_id: "ann" });
  });

  it("has the thread where a field is to come from it, also as what a read sends along", () => {
    const contract = z.object({ user_id: z.string(), session_id: z.string() });
    const context = stateContext(contract, { fields: { session_id: (_state, _run, threadId) => threadId } });
    const made = context.of({ user_id: "ann" }, { threadId: "t" });
    expect(made).toMatchObject({ user_id: "ann", session_id: "t" });
    expect(context.meta({ user_id: "ann" }, { threadId: "t" })).toEqual({ "dev.tenon/context": made });
    expect(() => context.meta({ user_id: "ann" })).toThrow("has no session_id");
  });

  it.each([
    [{}, "missing_context_field", "has no user_id"],
    [{ user_id: "" }, "missing_context_field", "has no user_id"],
    [{ user_id: null }, "missing_context_field", "has no user_id"],
    [{ user_id: "a", amount: "1" }, "invalid_context_value", "amount is a string"],
    [{ user_id: "a", amount: Number.NaN }, "invalid_context_value", "amount is NaN"],
    [{ user_id: "x".repeat(20_000) }, "context_too_large", "20"],
  ])("of %j is refused: %s", (state, code, message) => {
    expect(() => stateContext(contract).of(state)).toThrow(
      expect.objectContaining({ name: "ContractError", code, message: expect.stringContaining(message) }),
    );
  });

  it("can be told by a server's own schema, and has no trace where the schema forbids it", () => {
    const schema = { type: "object", properties: { a: { type: "string", maxLength: 2 } }, additionalProperties: false };
    expect(stateContext(schema).of({ a: "b", c: 1 })).toEqual({ a: "b" });
    expect(() => stateContext(schema).of({ a: "long" })).toThrow(
      "a: must NOT have more than 2 characters, got a string",
    );
    expect(() => stateContext({ type: "object" })).toThrow("needs the schema of an object");
    expect(() => stateContext(contract, { fields: { userid: () => 1 } })).toThrow('did you mean "user_id"');
  });

  it("has a trace id whose second half is the beginning of the state's hash", () => {
    const state = { user_id: "ann", amount: 2, at: new Date(0) };
    const hash = createHash("sha256").update('{"amount":2,"at":"1970-01-01T00:00:00.000Z","user_id":"ann"}');
    const { trace_id } = stateContext(contract).of(state, { threadId: "t" });
    expect(trace_id).toMatch(new RegExp(`${hash.digest("hex").slice(0, 16)}$`));
    expect(traceIdOf({ ...state, amount: 3 }, "t").slice(0, 16)).toBe(String(trace_id).slice(0, 16));
    expect(traceIdOf({ ...state, amount: 3 }, "t")).not.toBe(trace_id);
    expect(traceIdOf({ messages: [new HumanMessage("\ud800")] })).toHaveLength(32);
  });

  it("is JSON that meets its contract, or names a field that is wrong: whatever is in the state", () => {
    const properties = {
      text: string,
      number: { type: "number" },
      list: { type: "array", items: { type: ["string", "null"] } },
      map: { type: "object", additionalProperties: { type: "number" } },
      any: {},
      ["__proto__"]: string,
      toString: { type: "integer" },
    } as const satisfies Record<string, JsonObject>;
    const schema: JsonObject = { type: "object", properties, required: ["text"] };
    const context = stateContext(schema);
    const cyclic = fc.object().map((object) => Object.assign(object, { self: object }));
    const odd = fc.constantFrom<unknown>(
      Number.NaN,
      -0,
      Number.POSITIVE_INFINITY,
      new Date(Number.NaN),
      new Date(0),
      2n ** 64n,
      new Uuid(),
      new URL("https://a.example"),
      JSON.parse('{"__proto__":1,"constructor":{"prototype":2}}'),
    );
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
    });
    const value = fc.oneof(odd, anything, cyclic, fc.uuid(), fc.string({ minLength: 1 }), fc.double());
    const state = fc
      .tuple(fc.uuid(), fc.array(fc.tuple(fc.constantFrom(...Object.keys(properties)), value), { maxLength: 3 }))
      .map(([text, entries]) => Object.fromEntries([["text", text], ...entries]));
    let made = 0;
    fc.assert(
      fc.property(state, (given) => {
        try {
          const found = context.of(given);
          made++;
          expect(JSON.parse(JSON.stringify(found))).toEqual(found);
          expect(contextFault(schema, found)).toBeUndefined();
          expect(Object.getPrototypeOf(found)).toBe(Object.prototype);
          expect(Object.keys(found).filter((key) => !Object.hasOwn(given, key))).toEqual(["trace_id"]);
        } catch (error) {
          expect(error).toBeInstanceOf(ContractError);
          const { code, data } = error as ContractError;
          if (code === "context_too_large") return;
          expect(["missing_context_field", "invalid_context_value"]).toContain(code);
          const { field } = data as { field: string };
          expect(Object.keys(properties)).toContain(field.split(/[.[]/)[0]);
        }
      }),
      { numRuns: 1_000 },
    );
    expect(made).toBeGreaterThan(200);
  });
});
