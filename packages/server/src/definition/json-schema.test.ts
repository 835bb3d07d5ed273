import { issuePath, validate } from "@tenon/core/internal";
import { describe, expect, it } from "vitest";
import { jsonSchema } from "./json-schema.ts";

const issues = async (document: object, value: unknown): Promise<string[]> => {
  const result = await validate(jsonSchema({ ...document }), value);
  return result.issues?.map((issue) => `${issuePath(issue)}: ${issue.message}`) ?? [];
};

describe("a JSON Schema written by hand", () => {
  it("accepts what it describes and names every place that is wrong", async () => {
    const document = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: {
        n: { type: ["integer", "null"] },
        names: { type: "array", items: { type: "string" } },
        c: { enum: ["a", "b"] },
      },
      required: ["n", "id"],
    };
    expect(await issues(document, { n: null, id: 1, names: ["x"] })).toEqual([]);
    expect(await issues(document, { n: "x", names: ["x", 2], c: "z" })).toEqual([
      "id: required, but missing",
      "n: must be an integer or null",
      "names[1]: must be a string",
      'c: must be one of "a", "b"',
    ]);
  });
  it("follows local references, also to itself", async () => {
    const document = {
      type: "object",
      properties: { tree: { $ref: "#/$defs/node" } },
      $defs: {
        "odd/name": { type: "string" },
        node: {
          type: "object",
          properties: {
            name: { $ref: "#/$defs/odd~1name" },
            children: { type: "array", items: { $ref: "#/$defs/node" } },
          },
        },
      },
    };
    expect(await issues(document, { tree: { name: "a", children: [{ name: "b" }] } })).toEqual([]);
    expect(await issues(document, { tree: { children: [{ children: [{ name: 1 }] }] } })).toEqual([
      "tree.children[0].children[0].name: must be a string",
    ]);
  });
  it.each([
    ["a value that JSON cannot carry", { properties: { a: { const: Number.POSITIVE_INFINITY } } }, /const is Infinity/],
    [
      "another dialect",
      { $schema: "http://json-schema.org/draft-07/schema#" },
      /\$schema: the dialect .*draft-07.* is not supported/,
    ],
    [
      "a reference over the network",
      { properties: { a: { $ref: "https://example.com/a.json" } } },
      /\.properties\.a\.\$ref: .* points outside/,
    ],
    ["a reference to nothing", { properties: { a: { $ref: "#/$defs/a" } } }, /points at nothing/],
    ["a reference through a prototype", { properties: { a: { $ref: "#/__proto__" } } }, /points at nothing/],
    [
      "a type that is none",
      { properties: { a: { type: "bool" } } },
      /\.properties\.a\.type: "bool" is no type; did you mean "boolean"/,
    ],
    ["a misspelt type", { type: "objct" }, /did you mean "object"/],
    [
      "a pattern that is none",
      { properties: { a: { pattern: "(" } } },
      /\.properties\.a\.pattern: "\(" is no regular expression/,
    ],
    ["a required that is no list", { required: "a" }, /\.required: expected a list/],
    ["an empty anyOf", { anyOf: [] }, /\.anyOf: expected a list of schemas that is not empty/],
    ["a property that is no schema", { properties: { a: "string" } }, /\.properties\.a: expected a schema/],
    ["dynamic references", { $dynamicRef: "#x" }, /dynamic references are not supported/],
  ])("refuses %s when it is defined", (_, document, message) => {
    expect(() => jsonSchema({ type: "object", ...document }, "tool t: input")).toThrow(message);
  });
  it("refuses a document nested without end", () => {
    let deep: object = { type: "string" };
    for (let i = 0; i < 5_000; i++) deep = { type: "object", properties: { a: deep } };
    expect(() => jsonSchema({ ...deep })).toThrow(/nested deeper than 64 levels/);
    let wide: object = { type: "string" };
    for (let i = 0; i < 100; i++) wide = { not: wide };
    expect(() => jsonSchema({ ...wide })).toThrow(/nested deeper than 64 levels/);
  });
  it("takes int for integer", async () => {
    const schema = jsonSchema({ type: "object", properties: { n: { type: "int" }, m: { type: ["int", "null"] } } });
    expect(schema["~standard"].jsonSchema.input({ target: "draft-2020-12" })).toMatchObject({
      properties: { n: { type: "integer" }, m: { type: ["integer", "null"] } },
    });
    expect((await validate(schema, { n: 1.5 })).issues).toHaveLength(1);
  });
  it("runs patterns that are illegal with the u flag, and takes format names as notes", async () => {
    const document = {
      type: "object",
      properties: { a: { type: "string", pattern: "^[\\w-.]+$" }, b: { type: "string", format: "made-up" } },
    };
    expect(await issues(document, { a: "a-b.c", b: "anything" })).toEqual([]);
    expect(await issues(document, { a: "a b" })).toHaveLength(1);
  });
  it.each([
    [
      "a pattern that backtracks for ever",
      { properties: { a: { type: "string", pattern: "^(a+)+$" } } },
      { a: `${"a".repeat(40)}!` },
    ],
    [
      "a reference that never ends",
      { $defs: { x: { anyOf: [{ $ref: "#/$defs/x" }] } }, allOf: [{ $ref: "#/$defs/x" }] },
      {},
    ],
  ])("stops checking %s", async (_, document, value) => {
    const started = performance.now();
    await expect(validate(jsonSchema({ type: "object", ...document }), value)).rejects.toMatchObject({
      code: "schema_cost",
    });
    expect(performance.now() - started).toBeLessThan(5_000);
  });
  it("leaves the author's document alone", () => {
    const document = { type: "object", properties: { n: { type: "int" } } };
    jsonSchema(document);
    expect(document).toEqual({ type: "object", properties: { n: { type: "int" } } });
  });
});
