import { describe, expect, it } from "vitest";
import { hashText, rank } from "./hash.ts";

const members = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `http://10.0.0.${n}/mcp` }));
const keys = Array.from({ length: 4_000 }, (_, n) => `thread ${n}`);
const first = (key: string, all: readonly { id: string }[]) => rank(key, all)[0]?.id;

describe("which replica a key prefers", () => {
  it.each([2, 3, 4, 7, 20])("only the keys of a leaver move, each to its second choice, among %i", (count) => {
    const all = members(count);
    for (const gone of all) {
      const rest = all.filter((one) => one !== gone);
      for (const key of keys.slice(0, 500)) {
        const [before, second] = rank(key, all);
        expect(first(key, rest)).toBe(before?.id === gone.id ? second?.id : before?.id);
      }
    }
  });

  it("only keys that the newcomer gets move, and it gets its share", () => {
    const all = members(4);
    const more = [...all, { id: "http://10.0.1.0/mcp" }];
    const moved = keys.filter((key) => first(key, all) !== first(key, more));
    expect(moved.every((key) => first(key, more) === "http://10.0.1.0/mcp")).toBe(true);
    expect(moved.length / keys.length).toBeGreaterThan(0.15);
    expect(moved.length / keys.length).toBeLessThan(0.25);
  });

  it.each([2, 4, 10])("is spread evenly over %i, as first and as second choice", (count) => {
    for (const place of [0, 1]) {
      const counts = new Map<string, number>();
      for (const key of keys) {
        const id = rank(key, members(count))[place]?.id ?? "";
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
      expect(counts.size).toBe(count);
      for (const share of counts.values()) expect(Math.abs((share * count) / keys.length - 1)).toBeLessThan(0.2);
    }
  });

  it("does not depend on the order of the list, and is the same in every process", () => {
    const all = members(5);
    expect(rank("thread 7", [...all].reverse())).toEqual(rank("thread 7", all));
    expect([hashText(""), hashText("thread 7"), hashText("Fäden 🧵", 5)]).toMatchInlineSnapshot(`
      [
        8959613873314657,
        5797329330930907,
        8700269370574061,
      ]
    `);
  });
});
