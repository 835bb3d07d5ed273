import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { ajvIssues, subschemas } from "./json-schema.ts";
import { describeIssues } from "./schema.ts";

function issues(schema: object, value: unknown, verbose = true): string {
  const ajv = new Ajv2020({ strict: false, allErrors: true, verbose });
  const check = ajv.compile(schema);
  return check(value) ? "" : describeIssues(ajvIssues(check.errors ?? [], schema as never));
}
const kind = (name: string, ...needs: string[]) => ({
  type: "object",
  properties: { kind: { const: name }, ...Object.fromEntries(needs.map((need) => [need, { type: "number" }])) },
  required: ["kind", ...needs],
});
const shapes = { oneOf: [kind("circle", "r"), kind("square", "side")] };

describe("Ajv's errors as issues", () => {
  it("say which alternatives a named value chooses between", () => {
    const schema = { properties: { shape: shapes } };
    expect(issues(schema, { shape: { kind: "triangle" } })).toBe('shape.kind: must be one of "circle", "square"');
    expect(issues(schema, { shape: {} })).toBe('shape.kind: required, but missing; must be one of "circle", "square"');
    expect(issues(schema, { shape: { kind: "circle" } })).toBe("shape.r: required, but missing");
    expect(issues(schema, { shape: { kind: "square", side: "x" } })).toBe("shape.side: must be number");
    expect(issues(schema, { shape: { kind: "circle", r: 1 } })).toBe("");
    expect(issues(schema, { shape: 7 })).toBe("shape: must be object");
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
    expect(issues(schema, { n: ["a", 1] })).toBe("n[1]: must be string");
    expect(issues(schema, { n: "a" })).toBe("n: must be array or null");
  });
  it("say what is needed where every alternative misses something", () => {
    const schema = { type: "object", anyOf: [{ required: ["a"] }, { required: ["b", "c"] }] };
    expect(issues(schema, {})).toBe('value: needs "a" or "b" and "c"');
  });
  it("say that several alternatives fit", () => {
    expect(issues({ oneOf: [{ type: "number" }, { minimum: 1 }] }, 2)).toMatch(/fits several of the alternatives/);
  });
  it("are joined per place when Ajv does not tell more", () => {
    expect(issues({ properties: { shape: shapes } }, { shape: { kind: "x" } }, false)).toContain("shape.kind: must be");
    expect(issues({ type: ["integer", "null"] }, "x")).toBe("value: must be integer or null");
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
