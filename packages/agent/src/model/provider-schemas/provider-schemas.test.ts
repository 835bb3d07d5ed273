import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { geminiProblem, leftover, openaiProblem, RULES } from "../../../test/provider-rules.ts";
import { fromModelArguments, type ModelProvider, toModelSchema } from "../../index.ts";
import { checkArguments } from "../../tool/arguments.ts";

const PROVIDERS = ["openai", "deepseek", "anthropic", "gemini"] as const;

/** The first rule of the provider that the schema breaks. */
function problem(schema: unknown, provider: ModelProvider): string | undefined {
  const shown = toModelSchema(schema, provider);
  return RULES[provider === "strictest" ? "openai" : provider](shown) ?? leftover(shown);
}

const name = fc.oneof(
  fc.constantFrom("a", "b", "kind", "then", "订单号", "filter[id]", "__proto__", "constructor"),
  fc.string(),
);
const scalar = fc.oneof(fc.string(), fc.integer(), fc.double(), fc.boolean(), fc.constant(null));
const type = fc.constantFrom("string", "number", "integer", "boolean", "object", "array", "null", "any", "file");
const ref = fc.oneof(
  fc.constantFrom("#", "#/$defs/A", "#/$defs/B", "#/definitions/C", "#/properties/a", "#/$defs/%E0", "#x"),
  fc.constantFrom("https://example.com/schema.json", "other.json#/a", "", "#/nowhere", "#/$defs/A/properties/a"),
);

/** JSON Schemas of any draft, also wrong ones. */
const { node } = fc.letrec<{ node: unknown }>((tie) => {
  const node = tie("node");
  const map = fc.dictionary(name, node, { maxKeys: 4 });
  const list = fc.array(node, { maxLength: 3 });
  return {
    node: fc.oneof(
      { depthSize: "xsmall", maxDepth: 4, withCrossShrink: true },
      fc.constantFrom<unknown>(true, false, {}, { type: "string" }, { type: "null" }, null, "string", 3, []),
      fc.record(
        {
          type: fc.oneof(type, fc.array(type, { maxLength: 3 })),
          description: fc.oneof(fc.string(), fc.integer()),
          format: fc.constantFrom("date-time", "email", "int32", "float", "x"),
          pattern: fc.constantFrom("^a+$", "(?<=a)b", "(", "\\p{L}", "[a-z]{2,}", "(?i)x", "^(a+)+$"),
          enum: fc.oneof(fc.array(scalar, { maxLength: 4 }), fc.constantFrom<unknown>("x", [""], [[1], { a: 1 }])),
          const: scalar,
          default: fc.oneof(scalar, fc.object()),
          nullable: fc.boolean(),
          minimum: fc.oneof(fc.integer(), fc.string()),
          exclusiveMinimum: fc.oneof(fc.integer(), fc.boolean()),
          multipleOf: fc.integer(),
          maxLength: fc.integer(),
          minItems: fc.oneof(fc.nat(), fc.string()),
          properties: fc.oneof(map, list),
          required: fc.oneof(fc.array(name, { maxLength: 3 }), fc.boolean()),
          additionalProperties: node,
          patternProperties: map,
          dependentRequired: fc.dictionary(name, fc.array(name, { maxLength: 2 }), { maxKeys: 2 }),
          dependentSchemas: map,
          items: fc.oneof(node, list),
          prefixItems: list,
          contains: node,
          anyOf: list,
          oneOf: list,
          allOf: list,
          not: node,
          if: node,
          // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
          then: node,
          else: node,
          $ref: ref,
          $schema: fc.constant("http://json-schema.org/draft-07/schema#"),
          $id: fc.string(),
          $defs: fc.record({ A: node, B: node }, { requiredKeys: [] }),
          definitions: fc.record({ C: node }),
        },
        { requiredKeys: [] },
      ),
    ),
  };
});

describe("any JSON Schema becomes one that the provider takes", { timeout: 120_000 }, () => {
  it.each(PROVIDERS)("%s", (provider) => {
    fc.assert(
      fc.property(node, (schema) => {
        expect(problem(schema, provider)).toBeUndefined();
      }),
      { numRuns: 200 },
    );
  });

  it("the common form is taken by OpenAI, DeepSeek and, with legal names, Anthropic", () => {
    fc.assert(
      fc.property(node, (schema) => {
        expect(problem(schema, "strictest")).toBeUndefined();
      }),
      { numRuns: 100 },
    );
  });

  it("and arguments that fit the original stay as they are on their way back", () => {
    fc.assert(
      fc.property(node, fc.dictionary(name, fc.jsonValue(), { maxKeys: 4 }), (schema, args) => {
        const back = fromModelArguments(schema, args, "openai");
        if (checkArguments(schema, args).length === 0) expect(back).toEqual(args);
      }),
      { numRuns: 200 },
    );
  });
});

describe("a hostile schema costs a bounded amount", () => {
  const doubled = (levels: number) =>
    Object.fromEntries(
      Array.from({ length: levels }, (_, at) => [
        `L${at}`,
        { type: "object", properties: { a: { $ref: `#/$defs/L${at + 1}` }, b: { $ref: `#/$defs/L${at + 1}` } } },
      ]),
    );
  let deep: unknown = { type: "string" };
  for (let at = 0; at < 50_000; at += 1) deep = at % 2 ? { anyOf: [deep, { type: "null" }] } : { items: deep };
  const wide = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`p${at}`, { type: "string" }]));
  const cyclic: Record<string, unknown> = { type: "object" };
  cyclic.properties = { self: cyclic, list: { anyOf: [cyclic, cyclic] } };
  const choices = (depth: number): unknown =>
    depth === 0
      ? { type: "string" }
      : {
          properties: { x: choices(depth - 1) },
          anyOf: [1, 2, 3, 4].map((n) => ({ properties: { k: { const: n } } })),
        };
  const hostile: Readonly<Record<string, unknown>> = {
    "references that double at every level": { type: "object", $ref: "#/$defs/L0", $defs: doubled(60) },
    "50,000 levels": { type: "object", properties: { deep } },
    "50,000 properties": { type: "object", properties: wide, required: Object.keys(wide) },
    "a cycle of objects": cyclic,
    "a reference to itself": { type: "object", properties: { a: { $ref: "#/properties/a" } }, $ref: "#" },
    "choices within choices": { type: "object", properties: { a: choices(18) } },
    "10 MB of description": { type: "object", description: "x".repeat(10_000_000), properties: {} },
    "a list of 100,000 values": {
      type: "object",
      properties: { a: { enum: Array.from({ length: 100_000 }, (_, i) => i) } },
    },
  };
  it.each(Object.keys(hostile))("%s", (key) => {
    const schema = hostile[key];
    for (const provider of PROVIDERS) {
      expect(problem(schema, provider), provider).toBeUndefined();
      expect(JSON.stringify(toModelSchema(schema, provider)).length).toBeLessThan(500_000);
    }
  });
});

describe("what a model still sees", () => {
  it("a schema that needs no change is the server's own", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "number" } },
      required: ["a"],
      additionalProperties: false,
    };
    expect(toModelSchema(schema)).toBe(schema);
  });

  it("lists, their items and null survive", () => {
    const names = { anyOf: [{ type: "array", items: { type: "string" } }, { type: "null" }], default: null };
    const schema = { type: "object", properties: { names, n: { type: ["integer", "null"] } } };
    expect(toModelSchema(schema)).toBe(schema);
    expect(toModelSchema(schema, "gemini").properties).toEqual({
      names: { type: "array", items: { type: "string" }, nullable: true },
      n: { type: "integer", nullable: true },
    });
  });

  it("a choice at the top becomes properties and a sentence", () => {
    const schema = {
      type: "object",
      properties: { note: { type: "string" } },
      oneOf: [
        { properties: { kind: { const: "card" }, number: { type: "string" } }, required: ["kind", "number"] },
        { properties: { kind: { const: "iban" }, iban: { type: "string" } }, required: ["kind", "iban"] },
      ],
    };
    expect(toModelSchema(schema, "openai")).toEqual({
      type: "object",
      properties: {
        note: { type: "string" },
        kind: { enum: ["card", "iban"] },
        number: { type: "string" },
        iban: { type: "string" },
      },
      required: ["kind"],
      description: 'Exactly one of these must be given: (kind = "card", number) or (kind = "iban", iban).',
    });
  });

  it("references are written out, and a recursion says so", () => {
    const schema = {
      type: "object",
      properties: { tree: { $ref: "#/$defs/Node", description: "the root" }, far: { $ref: "https://example.com/x" } },
      $defs: { Node: { type: "object", properties: { kids: { type: "array", items: { $ref: "#/$defs/Node" } } } } },
    };
    expect(toModelSchema(schema).properties).toEqual({
      tree: {
        type: "object",
        description: "the root",
        properties: {
          kids: {
            type: "array",
            items: { type: "object", description: "Has the same form as the value around it." },
          },
        },
      },
      far: {},
    });
  });

  it("words of older drafts are said as today's", () => {
    const properties = {
      pair: { type: "array", items: [{ type: "string" }, { type: "number" }] },
      above: { type: "number", minimum: 0, exclusiveMinimum: true },
      maybe: { type: "string", enum: ["a"], nullable: true },
    };
    expect(toModelSchema({ type: "object", properties }).properties).toEqual({
      pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: {} },
      above: { type: "number", exclusiveMinimum: 0 },
      maybe: { type: ["string", "null"], enum: ["a", null] },
    });
  });

  it("Anthropic gets legal names, which are turned back", () => {
    const schema = {
      type: "object",
      properties: { "filter[id]": { type: "integer" }, 订单号: { type: "string" }, 客户号: { type: "string" } },
      required: ["订单号"],
    };
    const made = toModelSchema(schema, "anthropic");
    const [first = "", second = "", third = ""] = Object.keys(made.properties as object);
    expect(new Set([first, second, third]).size).toBe(3);
    expect(made.required).toEqual([second]);
    expect(JSON.stringify(made)).toContain('Called \\"订单号\\"');
    expect(fromModelArguments(schema, { [first]: "7", [second]: "A1", [third]: "C" }, "anthropic")).toEqual({
      "filter[id]": 7,
      订单号: "A1",
      客户号: "C",
    });
  });

  it("an unknown provider is an error with the nearest one", () => {
    // @ts-expect-error a typing error
    expect(() => toModelSchema({}, "gemeni")).toThrow('did you mean "gemini"?');
  });

  it("the rules bite", () => {
    expect(openaiProblem({ type: "object", anyOf: [], properties: {} })).toContain("top level");
    expect(openaiProblem({ type: "object", properties: { a: { type: "array" } } })).toContain("missing items");
    expect(geminiProblem({ type: "object", properties: { a: { const: 1 } } })).toContain("const");
    expect(geminiProblem({ type: "object", properties: { a: { type: "object" } } })).toContain("non-empty");
  });
});

describe("what a model writes is turned back only where the original wants it", () => {
  const schema = {
    type: "object",
    properties: {
      level: { enum: [1, 2, null] },
      n: { type: ["integer", "null"] },
      flag: { type: "boolean" },
      code: { type: "string" },
      both: { type: ["string", "number"] },
      at: { $ref: "#/$defs/Point" },
      list: { type: "array", items: { type: "number" } },
    },
    $defs: { Point: { type: "object", properties: { x: { type: "number" } }, required: ["x"] } },
  };
  it("numbers, booleans, enum values, null and objects that came as text", () => {
    const args = { level: "2", n: "null", flag: "true", code: "007", both: "8", at: '{"x":"1.5"}', list: '[1,"2"]' };
    expect(fromModelArguments(schema, args, "gemini")).toEqual({
      level: 2,
      n: null,
      flag: true,
      code: "007",
      both: "8",
      at: { x: 1.5 },
      list: [1, 2],
    });
  });
  it("arguments of a schema whose pattern takes for ever are left to the server", () => {
    const endless = { type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } };
    const args = { a: `${"a".repeat(60)}!` };
    expect(fromModelArguments(endless, args, "openai")).toEqual(args);
    expect(checkArguments(endless, args)).toEqual([]);
  });
  it("what does not fit even then is left alone", () => {
    expect(fromModelArguments(schema, { n: "x", flag: "true" }, "gemini")).toEqual({ n: "x", flag: "true" });
  });
});
