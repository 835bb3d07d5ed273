import { describe, expect, it } from "vitest";
import { describeIssues, wrongFields } from "../schema.ts";
import { schemaCheck } from "./check.ts";
import { resolvePointer, subschemas } from "./document.ts";

/** What is wrong with a value, as a caller is told. */
function said(schema: object, value: unknown): string {
  const compiled = schemaCheck(schema as never);
  if (compiled.fault) return `${compiled.fault.code} ${compiled.fault.path}`;
  const verdict = compiled.check(value);
  if (verdict.ok === "stopped") return `stopped: ${verdict.reason}`;
  const wrong = verdict.ok ? [] : wrongFields(verdict.issues, value, { whole: "arguments" });
  return wrong.map(({ message }) => message).join("; ");
}
function issues(schema: object, value: unknown): string {
  const compiled = schemaCheck(schema as never);
  const verdict = compiled.fault ? undefined : compiled.check(value);
  return verdict?.ok === false ? describeIssues(verdict.issues) : "";
}
const kind = (name: string, ...needs: string[]) => ({
  type: "object",
  properties: { kind: { const: name }, ...Object.fromEntries(needs.map((need) => [need, { type: "number" }])) },
  required: ["kind", ...needs],
});
const shapes = { oneOf: [kind("circle", "r"), kind("square", "side")] };

describe("what is wrong with a value", () => {
  it("say which alternatives a named value chooses between", () => {
    const schema = { properties: { shape: shapes } };
    expect(issues(schema, { shape: { kind: "triangle" } })).toBe('shape.kind: must be one of "circle", "square"');
    expect(issues(schema, { shape: {} })).toBe('shape.kind: required, but missing; must be one of "circle", "square"');
    expect(issues(schema, { shape: { kind: "circle" } })).toBe("shape.r: required, but missing");
    expect(issues(schema, { shape: { kind: "square", side: "x" } })).toBe("shape.side: must be a number");
    expect(issues(schema, { shape: { kind: "circle", r: 1 } })).toBe("");
    expect(issues(schema, { shape: 7 })).toBe("shape: must be an object");
  });
  it("do so through references", () => {
    const schema = {
      $defs: { circle: kind("circle", "r"), square: kind("square", "side") },
      properties: { shape: { oneOf: [{ $ref: "#/$defs/circle" }, { $ref: "#/$defs/square" }] } },
    };
    expect(issues(schema, { shape: { kind: "square" } })).toBe("shape.side: required, but missing");
    expect(issues(schema, { shape: { kind: "x" } })).toBe('shape.kind: must be one of "circle", "square"');
  });
  it("keep the errors of the alternative that has the value's type", () => {
    const schema = { properties: { n: { anyOf: [{ type: "array", items: { type: "string" } }, { type: "null" }] } } };
    expect(issues(schema, { n: ["a", 1] })).toBe("n[1]: must be a string");
    expect(issues(schema, { n: "a" })).toBe("n: must be an array or null");
  });
  it("say what is needed where every alternative misses something", () => {
    const schema = { type: "object", anyOf: [{ required: ["a"] }, { required: ["b", "c"] }] };
    expect(issues(schema, {})).toBe('value: needs "a" or "b" and "c"');
  });
  it("say that several alternatives fit", () => {
    expect(issues({ oneOf: [{ type: "number" }, { minimum: 1 }] }, 2)).toMatch(/fits several of the alternatives/);
  });
  it("are joined per place: by or between alternatives, by and where all must hold", () => {
    const id = { anyOf: [{ type: "string", minLength: 3 }, { type: "number" }] };
    expect(issues({ properties: { id } }, { id: true })).toBe("id: must be a string or a number");
    const both = { type: "string", minLength: 3, pattern: "^a" };
    expect(issues(both, "x")).toBe('value: must NOT have fewer than 3 characters and must match pattern "^a"');
  });
  it("are bounded in number", () => {
    const many = Array.from({ length: 5_000 }, () => 1);
    expect(issues({ items: { type: "string" } }, many).split(";")).toHaveLength(50);
  });
});

describe("subschemas", () => {
  it("are the schemas directly inside, not values that look like one", () => {
    const found = subschemas({ properties: { a: {} }, anyOf: [{}, true], enum: [{ type: "x" }], default: { not: {} } });
    expect(found.map(([path]) => path)).toEqual(["properties.a", "anyOf[0]", "anyOf[1]"]);
  });
});

describe("a wrong value", () => {
  const schema = {
    type: "object",
    properties: { n: { type: ["integer", "null"] }, limit: { type: "number" } },
    required: ["id"],
    additionalProperties: false,
  };
  it("is said by field: what was expected and what came", () => {
    expect(said(schema, { n: "x", limt: 1 })).toBe(
      'id: required, but missing; limt: unknown property; did you mean "limit"?; n: must be an integer or null, got "x"',
    );
  });
  it.each([
    ["text", 'arguments: must be an object, got "text"'],
    [[1, 2], "arguments: must be an object, got a list of 2"],
    [null, "arguments: must be an object, got null"],
    [7, "arguments: must be an object, got 7"],
  ])("that is no object is said to be none: %j", (value, words) => expect(said(schema, value)).toBe(words));
  it("is not repeated where the reader did not give it", () => {
    const verdict = { issues: [{ path: ["token"], message: "must be a number" }] };
    const [field] = wrongFields(verdict.issues, { token: "s3cret" }, { whole: "arguments", shown: {} });
    expect(field).toEqual({ path: "token", message: "token: must be a number, got a string" });
  });
  it("names properties that only the whole rules out, and names that are not allowed", () => {
    const all = { allOf: [{ properties: { a: {} } }], unevaluatedProperties: false };
    expect(said(all, { a: 1, b: 2 })).toBe("b: unknown property");
    expect(said({ propertyNames: { pattern: "^x-" } }, { y: 1 })).toBe(
      'y: unknown property; its name must match pattern "^x-"',
    );
  });
  it("does not pass for one because its prototype has the property", () => {
    expect(said({ type: "object", required: ["toString"] }, {})).toBe("toString: required, but missing");
  });
});

describe("a document", () => {
  const SLOW = "^(a|a)*$";
  const LONG = `${"a".repeat(40)}!`;
  it("is compiled once, whoever asks", () => {
    const document = { type: "object" };
    expect(schemaCheck(document)).toBe(schemaCheck(document));
  });
  it.each([
    ["2020-12", "https://json-schema.org/draft/2020-12/schema", { prefixItems: [{ type: "string" }] }],
    ["2019-09", "https://json-schema.org/draft/2019-09/schema", { items: [{ type: "string" }] }],
    ["draft-07", "http://json-schema.org/draft-07/schema#", { items: [{ type: "string" }] }],
    ["draft-04", "http://json-schema.org/draft-04/schema#", { items: [{ type: "string" }] }],
    ["draft-07, unsaid", undefined, { items: [{ type: "string" }] }],
  ])("of %s is read", (_, $schema, more) => {
    const document = $schema === undefined ? more : { $schema, ...more };
    expect(said(document, [1])).toBe("[0]: must be a string, got 1");
    expect(said(document, ["a"])).toBe("");
  });
  it.each([
    ["of a dialect nobody knows", { $schema: "https://example.com/dialect" }, "unsupported_dialect .$schema"],
    ["that refers to the network", { items: { $ref: "https://example.com/a" } }, "outside_reference .items.$ref"],
    ["that refers to nothing", { items: { $ref: "#/$defs/a" } }, "broken_reference .items.$ref"],
    ["with a type that is none", { not: { type: "text" } }, "illegal_type .not.type"],
    ["with a keyword of the wrong kind", { required: true }, "malformed .required"],
    ["that the compiler refuses", { minimum: "5" }, "not_compiled "],
  ])("%s is told apart by a code", (_, document, fault) => expect(said(document, [])).toBe(fault));
  it("may be too deep or too large", () => {
    let deep: object = {};
    for (let i = 0; i < 100; i++) deep = { not: deep };
    expect(said(deep, 1)).toMatch(/^too_large \.not\.not/);
    const wide = { properties: Object.fromEntries(Array.from({ length: 20_001 }, (_, i) => [`p${i}`, {}])) };
    expect(said(wide, 1)).toMatch(/^too_large/);
  });
  it("may point at a schema that is only true or false, and at anchors of any dialect", () => {
    const document = { $defs: { any: true, none: false, n: { $anchor: "n", type: "number" } } };
    expect(resolvePointer(document, "#/$defs/any")).toBe(true);
    expect(resolvePointer(document, "#n")).toEqual({ $anchor: "n", type: "number" });
    expect(resolvePointer({ definitions: { n: { $id: "#n" } } }, "#n")).toEqual({ $id: "#n" });
    expect(resolvePointer(document, "#/__proto__")).toBeUndefined();
    const properties = { a: { $ref: "#/$defs/any" }, b: { $ref: "#/$defs/none" }, c: { $ref: "#n" } };
    expect(said({ ...document, properties }, { a: 1, c: 1 })).toBe("");
    expect(said({ ...document, properties }, { b: 1, c: "x" })).toBe(
      'b: is not allowed here, got 1; c: must be a number, got "x"',
    );
  });
  it("is checked without patterns that are none here", () => {
    const document = { properties: { a: { $ref: "#/x/a" } }, x: { a: { type: "string", pattern: "(?i)a" } } };
    expect(said(document, { a: "b" })).toBe("");
    expect(said(document, { a: 1 })).toBe("a: must be a string, got 1");
  });
  it.each([
    ["a property", { properties: { p: { pattern: SLOW } } }, { p: LONG }],
    ["a place in a list, as up to 2019-09", { properties: { p: { items: [{ pattern: SLOW }] } } }, { p: [LONG] }],
    [
      "what follows such a list",
      { properties: { p: { items: [{}], additionalItems: { pattern: SLOW } } } },
      { p: [1, LONG] },
    ],
    ["a dependency", { dependencies: { p: { properties: { p: { pattern: SLOW } } }, q: ["p"] } }, { p: LONG }],
    ["where no keyword leads", { properties: { p: { $ref: "#/x/p" } }, x: { p: { pattern: SLOW } } }, { p: LONG }],
    ["the names of properties", { patternProperties: { [SLOW]: {} } }, { [LONG]: 1 }],
  ])("whose pattern backtracks for ever is stopped in %s", (_, document, value) => {
    expect(said(document, value)).toMatch(/^stopped: .*500 ms/);
  });
  it("with a pattern that is slow on long texts is stopped there, and is free on short ones", () => {
    const document = { type: "string", pattern: "\\w+\\d+x" };
    expect(said(document, "a1x")).toBe("");
    expect(said(document, "1".repeat(20_000))).toMatch(/^stopped/);
  });
  it("that refers to itself without end is stopped", () => {
    expect(said({ $defs: { a: { anyOf: [{ $ref: "#/$defs/a" }] } }, allOf: [{ $ref: "#/$defs/a" }] }, 1)).toMatch(
      /^stopped/,
    );
  });
});
