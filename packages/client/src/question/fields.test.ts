import { describe, expect, it } from "vitest";
import type { Field } from "../types/questions.ts";
import { parseFieldText } from "./field-text.ts";
import { checkAnswer } from "./field-values.ts";
import { parseFields } from "./fields.ts";

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
    expect(() => parseFields({ properties: { none: { type: "string", enum: [] }, x: { type: "array" } } })).toThrow(
      '"x"',
    );
  });
  it("reads what libraries write for an optional value, which is then not required", () => {
    const optional = parseFields({
      type: "object",
      properties: {
        a: { anyOf: [{ type: "string", format: "date" }, { type: "null" }], title: "When", default: null },
        b: { type: ["integer", "null"], minimum: 1 },
        c: { anyOf: [{ type: "string", enum: ["x", "y"] }, { type: "null" }] },
      },
      required: ["a", "b", "c"],
    });
    expect(optional).toEqual([
      { kind: "text", name: "a", title: "When", format: "date", required: false },
      { kind: "number", name: "b", integer: true, minimum: 1, required: false },
      {
        kind: "choice",
        name: "c",
        required: false,
        options: [
          { value: "x", title: "x" },
          { value: "y", title: "y" },
        ],
      },
    ]);
  });
  it("drops a default that breaks its own entry's rules", () => {
    const [one, two, three, four] = parseFields({
      properties: {
        one: { type: "string", enum: ["a", "b"], default: "c" },
        two: { type: "integer", maximum: 9, default: 10 },
        three: { type: "array", items: { enum: ["a"] }, default: ["a", "b"] },
        four: { type: "string", format: "email", default: "ann@example.com" },
      },
    });
    expect([one, two, three].map((field) => field?.default)).toEqual([undefined, undefined, undefined]);
    expect(four?.default).toBe("ann@example.com");
  });
  it("takes one of two options with the same value", () => {
    const [field] = parseFields({ properties: { x: { type: "string", enum: ["a", "a", "b"] } } });
    expect(field).toMatchObject({ options: [{ value: "a" }, { value: "b" }] });
  });
  it("refuses a form longer than a person fills", () => {
    const properties = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`p${i}`, { type: "string" }]));
    expect(() => parseFields({ properties })).toThrow("100 entries");
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
  it("says what was expected and what was given", () => {
    const messages = checkAnswer(fields, {
      name: "A",
      mail: "x",
      age: 0,
      rate: "1",
      ok: 1,
      plain: "c",
      many: ["r", "r"],
    });
    expect(messages.map(({ field, message }) => `${field} ${message}`)).toEqual([
      'name must have at least 2 characters, got "A"',
      'mail must be a valid email such as ann@example.com, got "x"',
      "age must be at least 1, got 0",
      'rate must be a number, got "1"',
      "ok must be true or false, got 1",
      'plain must be one of: a, b, got "c"',
      'many must not name a choice twice, got "r"',
    ]);
  });
  it.each([
    [
      "email",
      ["ann@example.com", "a.b+c@sub.example.co", "李@例子.测试"],
      ["ann", "a@b", "@b.c", "a@b..c", "a b@c.de", "a@-b.c", ".a@b.c"],
    ],
    ["uri", ["https://example.com", "urn:isbn:1", "mailto:a@b.c"], ["example.com", "https://a b.c", "//x", ""]],
    [
      "date",
      ["2026-02-28", "2028-02-29"],
      ["2026-02-30", "2026-2-3", "2026-13-01", "20260101", "2026-01-01T00:00:00Z"],
    ],
    [
      "date-time",
      ["2026-07-28T14:30:00Z", "2026-07-28t14:30:00.123+08:00", "2026-12-31T23:59:60Z"],
      ["2026-07-28", "2026-07-28T14:30:00", "2026-07-28T24:00:00Z", "2026-07-28 14:30:00Z", "2026-02-30T00:00:00Z"],
    ],
  ])("checks the format %s", (format, good, bad) => {
    const one = parseFields({ properties: { x: { type: "string", format } } });
    expect(good.filter((x) => checkAnswer(one, { x }).length > 0)).toEqual([]);
    expect(bad.filter((x) => checkAnswer(one, { x }).length === 0)).toEqual([]);
  });
  it("leaves formats it does not know to the server", () => {
    expect(
      checkAnswer(parseFields({ properties: { x: { type: "string", format: "constructor" } } }), { x: "" }),
    ).toEqual([]);
  });
  it("counts characters, not code units", () => {
    const [x] = parseFields({ properties: { x: { type: "string", maxLength: 2 } } });
    expect(checkAnswer(x ? [x] : [], { x: "👍👍" })).toEqual([]);
  });
  it("is not held up by a server's pattern that backtracks for ever", () => {
    const slow = parseFields({
      properties: { x: { type: "string", pattern: "^(a+)+$" }, y: { type: "string", pattern: "(" } },
    });
    expect(checkAnswer(slow, { x: `${"a".repeat(60)}!`, y: "anything" })).toEqual([]);
    expect(checkAnswer(slow, { x: "b" })).toHaveLength(1);
  });
  it("does not take inherited properties for answers", () => {
    const odd = parseFields({
      type: "object",
      properties: { constructor: { type: "string" } },
      required: ["constructor"],
    });
    expect(checkAnswer(odd, {})).toMatchObject([{ field: "constructor", message: "is required" }]);
  });
});

describe("parseFieldText", () => {
  it.each([
    ["name", " ann ", "ann"],
    ["age", "42", 42],
    ["rate", "-1.5e2", -150],
    ["ok", "Y", true],
    ["ok", "否", false],
    ["ok", "ＹＥＳ", true],
    ["age", "４２", 42],
    ["plain", "２", "b"],
    ["many", "g、b", ["g", "b"]],
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
