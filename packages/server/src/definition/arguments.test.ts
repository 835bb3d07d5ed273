import { ConfigError, type Schema } from "@tenon/core";
import { jsonSchemaOf } from "@tenon/core/internal";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import fc from "fast-check";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { fuzz } from "../../test/fuzz.ts";
import {
  type CompiledInput,
  prepareInput,
  READING_RULES,
  type ReadingRules,
  readArguments,
  type UnknownArguments,
} from "./arguments.ts";
import { type JsonSchema, jsonSchema } from "./json-schema.ts";

const compiled = (schema: Schema | undefined, unknownArguments?: UnknownArguments): CompiledInput =>
  prepareInput(schema, schema ? jsonSchemaOf(schema, "input", "test") : { type: "object", properties: {} }, {
    unknownArguments,
  });
const read = (
  schema: Schema | undefined,
  given: unknown,
  rules: Partial<ReadingRules> & { own?: UnknownArguments } = {},
): Promise<unknown> => readArguments(compiled(schema, rules.own), given, { ...READING_RULES, ...rules });

const libraries = {
  zod: z.object({ id: z.string(), n: z.int(), tags: z.array(z.string()).optional() }),
  valibot: toStandardJsonSchema(
    v.object({ id: v.string(), n: v.pipe(v.number(), v.integer()), tags: v.optional(v.array(v.string())) }),
  ),
  arktype: type({ id: "string", n: "number.integer", "tags?": "string[]" }),
  "json schema": jsonSchema({
    type: "object",
    properties: { id: { type: "string" }, n: { type: "integer" }, tags: { type: "array", items: { type: "string" } } },
    required: ["id", "n"],
  }),
} as const;

describe.each(Object.entries(libraries))("arguments described with %s", (_, schema: Schema) => {
  it("are read when they fit", async () => {
    expect(await read(schema, { id: "a", n: 1, tags: ["x"] })).toEqual({ args: { id: "a", n: 1, tags: ["x"] } });
  });
  it("are refused with every wrong field, what was expected and what came", async () => {
    const problem = await read(schema, { n: 1.5, tags: ["x", 2] });
    expect(problem).toEqual({ problem: expect.stringMatching(/\bid: /) });
    const text = String((problem as { problem: string }).problem);
    for (const part of text.split("; ")) expect(part).toMatch(/\b(id|n|tags\[1\]): .*(received|was|got|missing)/i);
    expect(text.split("; ")).toHaveLength(3);
  });
  it("lose unknown names by default (D4)", async () => {
    expect(await read(schema, { id: "a", n: 1, admin: true })).toEqual({ args: { id: "a", n: 1 } });
  });
  it("are refused with 'did you mean' when the server says so (D4)", async () => {
    expect(await read(schema, { id: "a", n: 1, tag: [] }, { unknownArguments: "reject" })).toEqual({
      problem: 'tag: unknown argument; did you mean "tags"?',
    });
  });
  it("are decoded from JSON text where an array is wanted, and nowhere else (D4)", async () => {
    expect(await read(schema, { id: '["1"]', n: 1, tags: '["x"]' })).toEqual({
      args: { id: '["1"]', n: 1, tags: ["x"] },
    });
  });
});

describe("unknown arguments", () => {
  it("follow the tool's own option before anything else", async () => {
    const strict = z.strictObject({ a: z.string() });
    expect(await read(strict, { a: "x", b: 1 })).toEqual({ problem: "b: unknown argument; known: a" });
    expect(await read(strict, { a: "x", b: 1 }, { own: "strip" })).toEqual({ args: { a: "x" } });
    expect(await read(libraries.zod, { id: "a", n: 1, x: 1 }, { own: "reject" })).toMatchObject({
      problem: /^x: unknown/,
    });
  });
  it("are kept where the schema takes any", async () => {
    expect(await read(z.looseObject({ a: z.string() }), { a: "x", b: 1 })).toEqual({ args: { a: "x", b: 1 } });
    const open = jsonSchema({ type: "object", patternProperties: { "^x-": { type: "string" } } });
    expect(await read(open, { "x-a": "1" }, { unknownArguments: "reject" })).toEqual({ args: { "x-a": "1" } });
  });
  it("are told apart from wrong ones in the same line", async () => {
    expect(await read(libraries.zod, { idd: "a", n: "x" }, { unknownArguments: "reject" })).toEqual({
      problem:
        "id: Invalid input: expected string, received undefined; n: Invalid input: expected number, received string; " +
        'idd: unknown argument; did you mean "id"?',
    });
  });
  it("are nothing to a tool without arguments, unless refused", async () => {
    expect(await read(undefined, { a: 1 })).toEqual({ args: {} });
    expect(await read(undefined, { a: 1 }, { unknownArguments: "reject" })).toMatchObject({ problem: /known: none/ });
  });
});

describe("JSON text in place of a value (D4)", () => {
  const schema = z.object({
    filter: z.object({ tags: z.array(z.string()), note: z.string() }).nullable(),
    either: z.union([z.string(), z.array(z.string())]).optional(),
  });
  it("is decoded at any depth where an object or array is wanted", async () => {
    const filter = JSON.stringify({ tags: '["a"]', note: '{"kept":"as text"}' });
    expect(await read(schema, { filter })).toEqual({ args: { filter: { tags: ["a"], note: '{"kept":"as text"}' } } });
  });
  it("is decoded inside the branch of a union that the value means", async () => {
    const shape = z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("list"), of: z.array(z.number()) }),
      z.object({ kind: z.literal("text"), of: z.string() }),
    ]);
    const wrapped = z.object({ shape });
    expect(await read(wrapped, { shape: { kind: "list", of: "[1]" } })).toEqual({
      args: { shape: { kind: "list", of: [1] } },
    });
    const text = { shape: { kind: "text", of: "[1]" } };
    expect(await read(wrapped, text)).toEqual({ args: text });
  });
  it("stays text where text is allowed too", async () => {
    expect(await read(schema, { filter: null, either: '["a"]' })).toEqual({ args: { filter: null, either: '["a"]' } });
  });
  it("is refused as text when it is not JSON of the wanted kind", async () => {
    expect(await read(schema, { filter: "[1" })).toMatchObject({ problem: expect.stringContaining("filter: ") });
    expect(await read(schema, { filter: "[1]" })).toMatchObject({
      problem: expect.stringMatching(/filter: .*(object|string)/),
    });
  });
  it("may be the arguments themselves", async () => {
    expect(await read(z.object({ a: z.number() }), '{"a":1}')).toEqual({ args: { a: 1 } });
    expect(await read(z.object({ a: z.number() }), "nonsense")).toEqual({
      problem: 'arguments: must be an object, got "nonsense"',
    });
    expect(await read(z.object({}), [1])).toEqual({ problem: "arguments: must be an object, got a list of 1" });
  });
});

describe("hostile arguments", () => {
  it("cannot reach a prototype", async () => {
    const given = JSON.parse('{"a":{"__proto__":{"admin":true},"x":1},"__proto__":{"admin":true}}');
    const loose = jsonSchema({ type: "object", properties: { a: { type: "object" } }, additionalProperties: true });
    const result = (await read(loose, given)) as { args: { a: { admin?: boolean }; admin?: boolean } };
    expect(result.args).toEqual({ a: { x: 1 } });
    expect(Object.assign({}, result.args.a).admin).toBeUndefined();
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
    const viaText = await read(
      libraries.zod,
      JSON.parse('{"id":"a","n":1,"tags":"[\\"x\\"]","constructor":{"prototype":1}}'),
    );
    expect(viaText).toEqual({ args: { id: "a", n: 1, tags: ["x"] } });
  });
  it("are refused when nested too deep or too long, in words", async () => {
    const any = jsonSchema({ type: "object", additionalProperties: true });
    let deep: unknown = 1;
    for (let i = 0; i < 101; i++) deep = [deep];
    expect(await read(any, { deep })).toEqual({ problem: "nested deeper than 100 levels" });
    for (let i = 0; i < 50_000; i++) deep = [deep];
    expect(await read(any, { deep })).toEqual({ problem: "nested deeper than 100 levels" });
    expect(await read(any, { list: Array(10_001).fill(0) })).toEqual({
      problem: "list: 10001 elements, more than the limit of 10000",
    });
    expect(await read(any, { list: Array(10_000).fill(0) })).toMatchObject({ args: {} });
    const limits = { maxDepth: 3, maxArrayElements: 2 };
    expect(await read(any, { a: { b: [1, 2, 3] } }, { limits })).toMatchObject({ problem: /^a\.b: 3 elements/ });
    expect(await read(any, { a: '{"b":[1,2,3]}' }, { limits })).toMatchObject({ args: {} });
  });
  it("get a short answer when everything is wrong", async () => {
    const list = z.object({ list: z.array(z.string()) });
    const { problem } = (await read(list, { list: Array(5_000).fill(1) })) as { problem: string };
    expect(problem).toMatch(/; and 4980 more$/);
    expect(problem.length).toBeLessThan(2_000);
  });
});

describe("any JSON at all", () => {
  const keys = fc.constantFrom(
    "a",
    "list",
    "type",
    "properties",
    "$ref",
    "items",
    "anyOf",
    "required",
    "pattern",
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "",
  );
  const json = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: "medium", withCrossShrink: true },
      fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.constant(null), fc.json()),
      fc.array(tie("value"), { maxLength: 4 }),
      fc.array(fc.tuple(keys, tie("value")), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
    ),
  })).value;

  it("is read or refused in words, and leaves the prototypes alone", async () => {
    const before = JSON.stringify(Object.getOwnPropertyNames(Object.prototype));
    const schemas: Schema[] = [
      ...Object.values(libraries),
      jsonSchema({
        type: "object",
        properties: { a: { type: "object" }, list: { type: "array", items: { $ref: "#" } } },
      }),
      z.looseObject({ a: z.record(z.string(), z.unknown()).optional() }),
    ];
    await fc.assert(
      fc.asyncProperty(
        json,
        fc.constantFrom(...schemas),
        fc.constantFrom("strip", "reject"),
        async (given, schema, unknownArguments) => {
          const result = (await read(schema, given, { unknownArguments })) as { args?: unknown; problem?: string };
          if (result.problem === undefined) expect(Object.getPrototypeOf(result.args)).toBe(Object.prototype);
          else expect(result.problem).toMatch(/./);
          expect(JSON.stringify(Object.getOwnPropertyNames(Object.prototype))).toBe(before);
        },
      ),
      fuzz(500),
    );
  });
  it("is a schema or refused as one", () => {
    fc.assert(
      fc.property(json, (given) => {
        try {
          jsonSchema(given as JsonSchema);
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigError);
        }
      }),
      fuzz(500),
    );
  });
});

describe("an error", () => {
  it("says what a union expects", async () => {
    const schema = z.object({ x: z.union([z.string(), z.number()]), kind: z.union([z.literal("a"), z.literal("b")]) });
    expect(await read(schema, { x: true, kind: "z" })).toEqual({
      problem: 'x: expected string or number, got true; kind: expected "a" or "b", got "z"',
    });
  });
  it("does not repeat a path the library already said", async () => {
    expect(await read(libraries.arktype, { id: "a", n: "x" })).toEqual({
      problem: "n: must be a number (was a string)",
    });
  });
});
