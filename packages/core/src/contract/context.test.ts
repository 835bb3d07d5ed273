import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../json.ts";
import { contextFault, MAX_CONTEXT_BYTES, schemaConflicts } from "./context.ts";

const schema: JsonObject = {
  type: "object",
  properties: {
    user_id: { type: "string" },
    amount: { type: "number" },
    count: { type: "integer" },
    at: { type: "string", format: "date-time" },
    tags: { type: "array", items: { type: "string" }, maxItems: 3 },
  },
  required: ["user_id", "amount"],
};
const good = fc.record(
  {
    user_id: fc.string({ minLength: 1 }),
    amount: fc.double({ noNaN: true, noDefaultInfinity: true }),
    count: fc.integer(),
    at: fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    tags: fc.array(fc.string(), { maxLength: 3 }),
    session_id: fc.uuid(),
  },
  { requiredKeys: ["user_id", "amount"], noNullPrototype: true },
);

describe("the check of a context", () => {
  it("lets through what fits, and changes nothing of it", () => {
    fc.assert(
      fc.property(good, (context) => {
        const before = structuredClone(context);
        expect(contextFault(schema, Object.freeze(context))).toBeUndefined();
        expect(context).toStrictEqual(before);
      }),
    );
  });
  it("names the field that is missing, empty or null", () => {
    fc.assert(
      fc.property(
        good,
        fc.constantFrom("user_id", "amount"),
        fc.constantFrom(undefined, null, ""),
        (context, field, none) => {
          const { [field]: _, ...without } = context;
          const fault = { reason: "missing_context_field", field };
          expect(contextFault(schema, without)).toMatchObject(fault);
          expect(contextFault(schema, { ...context, [field]: none })).toMatchObject(fault);
        },
      ),
    );
  });
  it("says so when there is no context at all", () => {
    expect(contextFault(schema, undefined)).toEqual({
      reason: "missing_context_field",
      field: "user_id",
      problem: "no context was sent along, and user_id is required",
    });
    expect(contextFault({ type: "object" }, undefined)).toBeUndefined();
  });
  it("converts nothing", () => {
    const wrong: [string, unknown][] = [
      ["user_id", 7],
      ["user_id", 7n],
      ["user_id", new Date()],
      ["user_id", new URL("https://a.example")],
      ["user_id", ["alice"]],
      ["amount", "7"],
      ["amount", Number.NaN],
      ["amount", Number.POSITIVE_INFINITY],
      ["amount", true],
      ["count", 1.5],
      ["at", 1_700_000_000],
      ["tags", "a"],
      // of what the schema does not know: still it must be what the wire carries
      ["other", Number.NaN],
      ["other", { deep: [1n] }],
      ["other", new Date()],
      ["other", () => 1],
    ];
    for (const [field, value] of wrong) {
      const context = { user_id: "alice", amount: 1, [field]: value };
      expect(contextFault(schema, context), `${field}: ${String(value)}`).toMatchObject({
        reason: "invalid_context_value",
        field,
      });
    }
  });
  it("takes -0, 3.0 and the edges of a double for the numbers they are", () => {
    for (const amount of [-0, 3.0, 5e-324, Number.MAX_VALUE, Number.MIN_SAFE_INTEGER]) {
      expect(contextFault(schema, { user_id: "a", amount, count: 3.0 })).toBeUndefined();
    }
  });
  it("never says a value that was given", () => {
    const secret = fc.stringMatching(/^[a-z0-9]{16,30}$/).map((text) => `sk-${text}`);
    const place = fc.constantFrom("amount", "count", "tags");
    fc.assert(
      fc.property(secret, place, (value, field) => {
        const fault = contextFault(schema, { user_id: value, amount: 1, [field]: value });
        expect(fault?.field).toBe(field);
        expect(JSON.stringify(fault)).not.toContain(value);
      }),
    );
  });
  it("has an answer for whatever comes, and only the two reasons", () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, withMap: true }),
        (context) => {
          const fault = contextFault(schema, context);
          if (fault) expect(["missing_context_field", "invalid_context_value"]).toContain(fault.reason);
        },
      ),
    );
  });
  it("looks at own fields only: what everything inherits is missing", () => {
    const inherited: JsonObject = { type: "object", required: ["toString"] };
    expect(contextFault(inherited, {})).toMatchObject({ reason: "missing_context_field", field: "toString" });
    const proto = JSON.parse('{"__proto__":{"user_id":"alice","amount":1}}');
    expect(contextFault(schema, proto)).toMatchObject({ reason: "missing_context_field", field: "user_id" });
    const own = { ...JSON.parse('{"__proto__":1}'), user_id: "a", amount: 1 };
    expect(contextFault({ ...schema, additionalProperties: false }, own)).toMatchObject({ field: "__proto__" });
  });
  it("refuses a cycle and what is larger than a request should carry, without walking all of it", () => {
    const cycle: Record<string, unknown> = { user_id: "alice", amount: 1 };
    cycle.self = cycle;
    const large = { user_id: "alice", amount: 1, text: "x".repeat(MAX_CONTEXT_BYTES) };
    for (const context of [cycle, large]) {
      expect(contextFault(schema, context)).toMatchObject({ reason: "invalid_context_value", field: "context" });
    }
  });
  it("says when the contract's own schema cannot be used", () => {
    const broken: JsonObject = { type: "object", properties: { a: { $ref: "https://elsewhere.example/s.json" } } };
    expect(contextFault(broken, {})?.problem).toContain("the contract's schema cannot be used");
  });
});

describe("two schemas of one contract", () => {
  const of = (type: unknown) => ({ type: "object", properties: { f: { type } } }) as JsonObject;
  it.each([
    ["string", "number", ["f"]],
    [["string", "null"], "string", []],
    ["number", "integer", []],
    ["integer", "number", ["f"]],
    ["boolean", ["null", "string"], ["f"]],
  ])("conflict where no value fits both: %j and %j", (server, client, fields) => {
    expect(schemaConflicts(of(server), of(client))).toEqual(fields);
  });
  it("do not conflict over what one of them leaves open", () => {
    expect(schemaConflicts({ type: "object" }, of("string"))).toEqual([]);
    expect(schemaConflicts({ type: "object", properties: { f: {} } }, of("string"))).toEqual([]);
    expect(schemaConflicts({ type: "object" }, JSON.parse('{"properties":{"toString":{"type":"string"}}}'))).toEqual(
      [],
    );
  });
});
