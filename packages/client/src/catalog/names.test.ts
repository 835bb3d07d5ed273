import { describe, expect, it } from "vitest";
import { nameTools } from "./names.ts";

const tool = (server: string, wireName: string) => ({ server, wireName });

describe("model-side names", () => {
  it("keep what is legal as it is", () => {
    expect(nameTools([tool("order", "query_order")], "prefixed", ["order"])).toEqual(["mcp_order_query_order"]);
    expect(nameTools([tool("order", "query")], "plain", ["order"])).toEqual(["query"]);
    expect(nameTools([tool("order", "query")], (server, name) => `${server}-${name}`, ["order"])).toEqual([
      "order-query",
    ]);
  });
  it("are legal, unique and the same in any order, whatever servers call themselves and their tools", () => {
    const tools = [
      tool("北京", "天气"),
      tool("北京", "地铁"),
      tool("s", "a.b"),
      tool("s", "a/b"),
      tool("s", "a_b"),
      tool("s", "x".repeat(90)),
    ];
    const names = nameTools(tools, "prefixed", ["北京", "s"]);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(new Set(names).size).toBe(tools.length);
    expect(nameTools(tools.toReversed(), "prefixed", ["s", "北京"])).toEqual(names.toReversed());
    expect(names[4]).toBe("mcp_s_a_b");
  });
  it("do not depend on whether another server is up", () => {
    const servers = ["a", "a_b"];
    const [alone] = nameTools([tool("a", "b_c")], "prefixed", servers);
    const both = nameTools([tool("a", "b_c"), tool("a_b", "c")], "prefixed", servers);
    expect(both).toEqual([alone, "mcp_a_b_c"]);
  });
  it("of a function that gives one name twice are kept apart", () => {
    const names = nameTools([tool("a", "x"), tool("b", "x")], () => "same", ["a", "b"]);
    expect(new Set(names).size).toBe(2);
  });
  it("of tools that are called like other tools' marked names are kept apart", () => {
    const [marked = ""] = nameTools([tool("s", "a.b")], "prefixed", ["s"]);
    const tools = [tool("s", "a.b"), tool("s", marked.slice("mcp_s_".length))];
    const names = nameTools(tools, "prefixed", ["s"]);
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    const third = [...tools, ...names.map((name) => tool("s", name.slice("mcp_s_".length)))];
    expect(new Set(nameTools(third, "prefixed", ["s"])).size).toBe(4);
  });
  it("must be texts", () => {
    expect(() => nameTools([tool("a", "x")], () => undefined as never, ["a"])).toThrow(/must return a text/);
  });
  it("plain refuses a collision and names both", () => {
    expect(() => nameTools([tool("a", "echo"), tool("b", "echo")], "plain", ["a", "b"])).toThrow(
      '"echo" of server "a" and "echo" of server "b"',
    );
  });
});
