import { describe, expect, it } from "vitest";
import { checkParamHeaders, decodeHeader, paramHeadersOf, readParamHeaders } from "./param-headers.ts";

const property = (about: object): object => ({ type: "object", properties: { p: about } });

describe("declarations", () => {
  it("are found at any depth of properties", () => {
    const schema = property({ type: "object", properties: { deep: { type: "integer", "x-mcp-header": "Deep" } } });
    readParamHeaders(schema, "tool t");
    expect(paramHeadersOf(schema)).toEqual([{ path: ["p", "deep"], name: "Deep", numeric: true }]);
  });
  it.each([
    [property({ type: "number", "x-mcp-header": "N" }), "needs type string, integer or boolean; it is number"],
    [property({ type: "string", "x-mcp-header": "a b" }), "must be a header token"],
    [property({ type: "array", items: { type: "string", "x-mcp-header": "I" } }), "only on properties of properties"],
    [
      { properties: { a: { type: "string", "x-mcp-header": "R" }, b: { type: "string", "x-mcp-header": "r" } } },
      '"r" is used twice',
    ],
  ])("%j is refused", (schema, problem) => {
    expect(() => readParamHeaders(schema, "tool t")).toThrow(problem);
  });
  it("are not looked for in data", () => {
    const schema = property({ type: "object", default: { "x-mcp-header": 1 } });
    readParamHeaders(schema, "tool t");
    expect(paramHeadersOf(schema)).toEqual([]);
  });
});

describe("values", () => {
  it("come plain or in base64", () => {
    expect(decodeHeader("eu")).toBe("eu");
    expect(decodeHeader("=?base64?w6k=?=")).toBe("é");
    for (const bad of ["=?base64?w6k?=", "=?base64?!?=", "=?base64?/w==?="]) expect(decodeHeader(bad)).toBeUndefined();
  });
  it("must be repeated where the body has one, and nowhere else", () => {
    const declared = [{ path: ["n"], name: "N", numeric: true }];
    const check = (args: unknown, value?: string) => checkParamHeaders(declared, args, () => value);
    expect(check({ n: 42 }, "42.0")).toBeUndefined();
    expect(check({ n: 42 }, "0x2a")?.body).toContain("says");
    expect(check({ n: 42 })?.body).toContain("absent");
    expect(check({ n: null })).toBeUndefined();
    expect(check({}, "1")).toBeUndefined();
    expect(check({ n: ["x"] })).toBeUndefined();
  });
});
