import { describe, expect, it } from "vitest";
import { createCacheHints } from "../definition/cache.ts";
import { createPaging } from "./paging.ts";

const items = (...names: string[]): { name: string }[] => names.map((name) => ({ name }));
const list = items("a", "b", "c", "d", "e");
const read = (pages: ReturnType<typeof createPaging>, from: object[], cursor?: unknown, revision = 1) =>
  pages.list("tools/list", "modern", from, { revision, personal: false }, cursor) as {
    tools: { name: string }[];
    nextCursor?: string;
  };
const names = (page: { tools: { name: string }[] }): string => page.tools.map((tool) => tool.name).join("");

describe("pages of a list", () => {
  it("follow each other to the end", () => {
    const pages = createPaging(createCacheHints(), 2);
    const one = read(pages, list);
    const two = read(pages, list, one.nextCursor);
    const three = read(pages, list, two.nextCursor);
    expect([one, two, three].map(names)).toEqual(["ab", "cd", "e"]);
    expect(three.nextCursor).toBeUndefined();
  });
  it("are the same objects until the list changes, so that their bytes can be kept", () => {
    const pages = createPaging(createCacheHints(), 2);
    expect(read(pages, list)).toBe(read(pages, list));
    expect(pages.isPage(read(pages, list))).toBe(true);
    expect(read(pages, list, undefined, 2)).not.toBe(read(pages, list, undefined, 1));
  });
  it("go on behind the last item although the list changed in front of it", () => {
    const pages = createPaging(createCacheHints(), 2);
    const { nextCursor } = read(pages, list);
    expect(names(read(pages, items("0", "a", "b", "c", "d"), nextCursor))).toBe("cd");
    expect(() => read(pages, items("x", "y"), nextCursor)).toThrow("start again without it");
  });
  it("refuse cursors that were changed, of another list, or of another server", () => {
    const pages = createPaging(createCacheHints(), 2, "secret");
    const cursor = String(read(pages, list).nextCursor);
    expect(names(read(createPaging(createCacheHints(), 2, "secret"), list, cursor))).toBe("cd");
    for (const bad of ["", "x", `x${cursor}`, cursor.slice(0, -2), 7, null]) {
      expect(() => read(pages, list, bad)).toThrow("The cursor is not one of this list");
    }
    expect(() => read(createPaging(createCacheHints(), 2, "other"), list, cursor)).toThrow("The cursor");
    expect(() => pages.list("prompts/list", "modern", list, { revision: 1, personal: false }, cursor)).toThrow(
      "The cursor",
    );
  });
  it("of a list that not everybody sees are for nobody else, whatever the server says of lists", () => {
    const pages = createPaging(createCacheHints({ scope: "public" }), 2);
    const scope = (personal: boolean): unknown =>
      pages.list("tools/list", "modern", [...list], { revision: 1, personal }, undefined).cacheScope;
    expect([scope(false), scope(true)]).toEqual(["public", "private"]);
  });
  it("have a size above zero", () => {
    expect(() => createPaging(createCacheHints(), 0)).toThrow("pageSize is 0");
  });
});
