import { describe, expect, it } from "vitest";
import { checkAnswer, parseFields, parseFieldText } from "./fields.ts";
import type { Field } from "./types.ts";

const schema = {
  type: "object",
  properties: {
    name: { type: "string", title: "Name", minLength: 2, maxLength: 4, pattern: "^[a-z]+$" },
    mail: { type: "string", format: "email" },
    age: { type: "integer", minimum: 1, maximum: 99, default: 18 },
    rate: { type: "number" },
    ok: { type: "boolean", description: "Agree?" },
    plain: { type: "string", enum: ["a", "b"], enumNames: ["Alpha", "Beta"] },
    titled: { type: "string", oneOf: [{ const: "x", title: "Ex" }, { const: "y" }] },
    many: { type: "array", items: { type: "string", enum: ["r", "g", "b"] }, minItems: 1, maxItems: 2 },
    titledMany: { type: "array", items: { anyOf: [{ const: "1", title: "One" }] }, default: ["1"] },
  },
  required: ["name", "ok"],
};
const fields = parseFields(schema);
const field = (name: string): Field => {
  const found = fields.find((one) => one.name === name);
  if (!found) throw new Error(name);
  return found;
};

describe("parseFields", () => {
  it("reads every kind of the restricted schema", () => {
    expect(fields.map(({ kind, required }) => [kind, required])).toEqual([
      ["text", true],
      ["text", false],
      ["number", false],
      ["number", false],
      ["boolean", true],
      ["choice", false],
      ["choice", false],
      ["choices", false],
      ["choices", false],
    ]);
    expect(field("plain")).toMatchObject({
      options: [
        { value: "a", title: "Alpha" },
        { value: "b", title: "Beta" },
      ],
    });
    expect(field("titled")).toMatchObject({
      options: [
        { value: "x", title: "Ex" },
        { value: "y", title: "y" },
      ],
    });
    expect(field("many")).toMatchObject({ minItems: 1, maxItems: 2 });
    expect(field("titledMany")).toMatchObject({ default: ["1"], options: [{ value: "1", title: "One" }] });
    expect(field("age")).toMatchObject({ integer: true, default: 18 });
  });
  it("refuses what a form cannot ask and names it", () => {
    expect(() => parseFields({ type: "object", properties: { deep: { type: "object" } } })).toThrow('"deep"');
    expect(() => parseFields(undefined)).toThrow("schema");
  });
});

describe("checkAnswer", () => {
  it("accepts a fitting answer", () => {
    expect(checkAnswer(fields, { name: "ann", ok: false, age: 5, plain: "b", many: ["r", "b"] })).toEqual([]);
  });
  it("names every entry that does not fit", () => {
    const issues = checkAnswer(fields, { name: "A", mail: "x", age: 1.5, rate: "1", plain: "c", many: [], extra: 1 });
    expect(issues.map((issue) => issue.field)).toEqual(["name", "mail", "age", "rate", "ok", "plain", "many", "extra"]);
  });
  it("does not take inherited properties for answers", () => {
    const odd = parseFields({
      type: "object",
      properties: { constructor: { type: "string" } },
      required: ["constructor"],
    });
    expect(checkAnswer(odd, {})).toEqual([{ field: "constructor", message: "is required" }]);
  });
});

describe("parseFieldText", () => {
  it.each([
    ["name", " ann ", "ann"],
    ["age", "42", 42],
    ["rate", "-1.5e2", -150],
    ["ok", "Y", true],
    ["ok", "否", false],
    ["plain", "Beta", "b"],
    ["plain", "2", "b"],
    ["titledMany", "1", ["1"]],
    ["many", "r, 3", ["r", "b"]],
    ["age", "", 18],
    ["mail", "", undefined],
  ])("reads %s from %j", (name, text, value) => {
    expect(parseFieldText(field(name), text)).toEqual({ value });
  });
  it.each([
    ["name", ""],
    ["name", "toolong"],
    ["age", "12x"],
    ["age", "0"],
    ["ok", "maybe"],
    ["plain", "9"],
    ["many", "r,g,b"],
    ["many", "r,z"],
    ["mail", "nobody"],
  ])("says what is wrong with %s from %j", (name, text) => {
    expect(parseFieldText(field(name), text)).toHaveProperty("issue");
  });
});
