import { describe, expect, it } from "vitest";
import { alice } from "../../test/ask.ts";
import { createServer } from "../index.ts";
import { createScopes, hasScope, type ScopeHierarchy } from "./scopes.ts";

const has = (granted: string[], needed: string, hierarchy?: ScopeHierarchy): boolean =>
  hasScope({ scopes: createScopes(hierarchy).implied(granted) }, needed);

describe("a scope", () => {
  it("is had by who was granted it, and by nobody without a token", () => {
    expect(has(["orders:read"], "orders:read")).toBe(true);
    expect(has(["orders:read"], "orders:refund")).toBe(false);
    expect(hasScope(undefined, "orders:read")).toBe(false);
    expect(hasScope(alice, "orders:read")).toBe(true);
  });
  it("is covered by a star after its beginning, and by no other star", () => {
    expect(has(["orders:*"], "orders:refund")).toBe(true);
    expect(has(["orders:*"], "orders:refund:partial")).toBe(true);
    for (const granted of ["*", "orders*", "orders:ref*", "order:*", "*:refund", "orders"]) {
      expect(has([granted], "orders:refund"), granted).toBe(false);
    }
    expect(has(["orders:*"], "orders")).toBe(false);
  });
  it("implies what the hierarchy says, and what that implies", () => {
    const hierarchy = { admin: ["orders:refund", "stock:*"], "orders:refund": ["orders:read"] };
    expect(has(["orders:refund"], "orders:read", hierarchy)).toBe(true);
    expect(has(["admin"], "orders:read", hierarchy)).toBe(true);
    expect(has(["admin"], "stock:write", hierarchy)).toBe(true);
    expect(has(["orders:*"], "orders:read", { "orders:refund": ["orders:read"] })).toBe(true);
    expect(has(["orders:*"], "audit", { "orders:refund": ["audit"] })).toBe(true);
    expect(has(["orders:read"], "orders:refund", hierarchy)).toBe(false);
  });
  it("implies the same when a scope was granted twice", () => {
    expect(createScopes({ a: ["b"] }).implied(["a", "a"])).toEqual(["a", "b"]);
  });
  it("may stand in a circle: the scopes in it are the same", () => {
    const circle = { a: ["b"], b: ["c"], c: ["a"] };
    for (const one of ["a", "b", "c"])
      for (const other of ["a", "b", "c"]) expect(has([one], other, circle)).toBe(true);
    expect(has(["d"], "a", circle)).toBe(false);
  });
});

describe("a hierarchy or a list of scopes that is none", () => {
  const make = (options: object): unknown => createServer({ name: "s", version: "1", ...options });
  it.each([
    [{ scopeHierarchy: ["a"] }, "scope_hierarchy"],
    [{ scopeHierarchy: { a: "b" } }, "scope"],
    [{ scopeHierarchy: { a: ["b c"] } }, "scope"],
    [{ scopeHierarchy: { 'a"': ["b"] } }, "scope"],
  ])("is refused when the server is made: %j", (options, code) => {
    expect(() => make(options)).toThrow(expect.objectContaining({ code }));
  });
  it("is refused where a tool names it", () => {
    const server = createServer({ name: "s", version: "1" });
    expect(() => server.tool("refund", { scopes: ["orders refund"] }, () => 1)).toThrow(
      'tool refund: scopes: "orders refund" is no scope',
    );
    expect(() => server.prompt("p", { scopes: "orders:read" as never }, () => "x")).toThrow("must be a list of scopes");
  });
});
