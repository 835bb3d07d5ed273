import type { BaseStore } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** A store and what its kind does where LangGraph's own stores do not agree with each other. */
export interface StoreKind {
  readonly name: string;
  /** A store without items. */
  open(): BaseStore | Promise<BaseStore>;
  /** `memory`: namespaces by label, with wildcards and cut depths. `database`: batches in order, deleted is gone, objects contain. */
  readonly like: ReadonlyArray<"memory" | "database">;
}

let serial = 0;
/** A root nobody else uses, also when stores share a database. */
const freshRoot = (): string => `root${process.pid}-${serial++}`;
const keysOf = (items: ReadonlyArray<{ key: string }>): string[] => items.map(({ key }) => key).sort();

/** What every store for LangGraph must do; run against its own ones too, so that they agree. */
export function storeSuite(kind: StoreKind): void {
  describe(`long-term memory in ${kind.name}`, () => {
    let store: BaseStore;
    beforeAll(async () => {
      store = await kind.open();
      await store.start();
    });
    afterAll(() => store.stop());

    it("keeps values by namespace and key, and knows when", async () => {
      const user = [freshRoot(), "u-1"];
      await store.put(user, "prefs", { language: "中文", nested: { list: [1, null, "ü"] }, yes: true });
      const item = await store.get(user, "prefs");
      expect(item).toMatchObject({
        namespace: user,
        key: "prefs",
        value: { language: "中文", nested: { list: [1, null, "ü"] }, yes: true },
      });
      expect(item?.createdAt).toBeInstanceOf(Date);
      expect(item?.updatedAt).toBeInstanceOf(Date);
      expect(await store.get(user, "other")).toBeNull();
      expect(await store.get([...user, "deeper"], "prefs")).toBeNull();
    });

    it("replaces a value and remembers when it was first put", async () => {
      const space = [freshRoot()];
      await store.put(space, "k", { n: 1, old: true });
      const createdAt = (await store.get(space, "k"))?.createdAt.getTime() ?? 0;
      await new Promise((resolve) => setTimeout(resolve, 20));
      await store.put(space, "k", { n: 2 });
      const item = await store.get(space, "k");
      expect(item?.value).toEqual({ n: 2 });
      expect(item?.createdAt.getTime()).toBe(createdAt);
      expect(item?.updatedAt.getTime()).toBeGreaterThan(createdAt);
    });

    it("forgets what is deleted, and does not mind what was never there", async () => {
      const space = [freshRoot()];
      await store.put(space, "k", { n: 1 });
      await store.delete(space, "k");
      await store.delete(space, "never");
      expect(await store.get(space, "k")).toBeNull();
      expect(await store.search(space)).toEqual([]);
    });

    it("finds what lies in a namespace and below", async () => {
      const root = freshRoot();
      await store.put([root], "top", {});
      await store.put([root, "a"], "one", {});
      await store.put([root, "a", "deep"], "two", {});
      await store.put([root, "b"], "three", {});
      await store.put([freshRoot()], "elsewhere", {});
      expect(keysOf(await store.search([root]))).toEqual(["one", "three", "top", "two"]);
      expect(keysOf(await store.search([root, "a"]))).toEqual(["one", "two"]);
      expect(await store.search([root, "c"])).toEqual([]);
      expect((await store.search([root, "b"]))[0]).toMatchObject({ namespace: [root, "b"], key: "three", value: {} });
    });

    describe("filters", () => {
      const root = freshRoot();
      beforeAll(async () => {
        const items = { a: { size: 1, kind: "x" }, b: { size: 5, kind: "x" }, c: { size: 10, kind: "y" } };
        for (const [key, value] of Object.entries(items)) await store.put([root], key, value);
      });
      it.each([
        [{ kind: "x" }, ["a", "b"]],
        [{ size: 5 }, ["b"]],
        [{ kind: { $eq: "y" } }, ["c"]],
        [{ kind: { $ne: "x" } }, ["c"]],
        [{ size: { $gt: 5 } }, ["c"]],
        [{ size: { $gte: 5 } }, ["b", "c"]],
        [{ size: { $lt: 5 } }, ["a"]],
        [{ size: { $lte: 5 } }, ["a", "b"]],
        [{ size: { $gt: 1, $lt: 10 } }, ["b"]],
        [{ kind: { $in: ["y", "z"] } }, ["c"]],
        [{ kind: { $nin: ["y", "z"] } }, ["a", "b"]],
        [{ kind: "x", size: { $gte: 2 } }, ["b"]],
        [{ nothing: "here" }, []],
        [{ nothing: { $gt: 0 } }, []],
        [{}, ["a", "b", "c"]],
      ])("%j", async (filter, keys) => {
        expect(keysOf(await store.search([root], { filter }))).toEqual(keys);
      });
    });

    it("gives ten at a time unless told otherwise, page by page, each once", async () => {
      const root = freshRoot();
      const keys = Array.from({ length: 14 }, (_, i) => `k${String(i).padStart(2, "0")}`);
      for (const key of keys) await store.put([root], key, { even: Number(key.slice(1)) % 2 === 0 });
      expect(await store.search([root])).toHaveLength(10);
      const pages = [];
      for (const offset of [0, 5, 10]) pages.push(...(await store.search([root], { limit: 5, offset })));
      expect(keysOf(pages)).toEqual(keys);
      expect(await store.search([root], { filter: { even: true }, limit: 5, offset: 5 })).toHaveLength(2);
      expect(await store.search([root], { limit: 5, offset: 20 })).toEqual([]);
    });

    it("does several things in one batch and answers each in its place", async () => {
      const root = freshRoot();
      await store.put([root], "old", { n: 1 });
      const results = await store.batch([
        { namespace: [root], key: "old" },
        { namespace: [root], key: "new", value: { n: 2 } },
        { namespacePrefix: [root], limit: 10, offset: 0, filter: { n: 1 } },
        { matchConditions: [{ matchType: "prefix", path: [root] }], limit: 10, offset: 0 },
        { namespace: [root], key: "never" },
      ]);
      expect(results[0]).toMatchObject({ key: "old", value: { n: 1 } });
      expect(results[1] ?? null).toBeNull();
      expect(keysOf(results[2] as never)).toEqual(["old"]);
      expect(results[3]).toEqual([[root]]);
      expect(results[4]).toBeNull();
      expect((await store.get([root], "new"))?.value).toEqual({ n: 2 });
    });

    it("lists namespaces by how they begin and end", async () => {
      const root = freshRoot();
      for (const [kind, version] of [
        ["docs", "v1"],
        ["docs", "v2"],
        ["users", "v1"],
      ]) {
        await store.put([root, kind ?? "", version ?? ""], "k", {});
        await store.put([root, kind ?? "", version ?? ""], "another", {});
      }
      const list = (options: object) => store.listNamespaces({ prefix: [root], ...options });
      expect(await list({})).toEqual([
        [root, "docs", "v1"],
        [root, "docs", "v2"],
        [root, "users", "v1"],
      ]);
      expect(await list({ prefix: [root, "docs"] })).toHaveLength(2);
      expect(await list({ suffix: ["v1"] })).toEqual([
        [root, "docs", "v1"],
        [root, "users", "v1"],
      ]);
      expect(await list({ limit: 1, offset: 1 })).toEqual([[root, "docs", "v2"]]);
      expect(await list({ suffix: ["v9"] })).toEqual([]);
    });

    it.each([[[]], [["a.b"]], [["a", ""]], [["langgraph", "x"]]])("refuses to put under %j", async (namespace) => {
      await expect(store.put(namespace, "k", {})).rejects.toThrow(/namespace/i);
    });

    describe.runIf(kind.like.includes("memory"))("namespaces go by labels, so", () => {
      it("a prefix is whole labels", async () => {
        const root = freshRoot();
        await store.put([root, "ab"], "k", {});
        expect(await store.search([root, "a"])).toEqual([]);
        expect(await store.listNamespaces({ prefix: [root, "a"] })).toEqual([]);
        expect(await store.listNamespaces({ prefix: [root], suffix: ["b"] })).toEqual([]);
      });
      it("underscores and percent signs are letters", async () => {
        const root = freshRoot();
        await store.put([root, "user_prefs"], "k", {});
        await store.put([root, "userXprefs"], "other", {});
        await store.put([root, "100%"], "percent", {});
        expect(keysOf(await store.search([root, "user_prefs"]))).toEqual(["k"]);
        expect(keysOf(await store.search([root, "100%"]))).toEqual(["percent"]);
      });
      it("a star stands for one of them, and depths are cut", async () => {
        const root = freshRoot();
        for (const path of ["a:x:1", "a:y:1", "b:x:2"]) await store.put([root, ...path.split(":")], "k", {});
        const list = (options: object) => store.listNamespaces({ prefix: [root], ...options });
        expect(await list({ prefix: [root, "*", "x"] })).toEqual([
          [root, "a", "x", "1"],
          [root, "b", "x", "2"],
        ]);
        expect(await list({ suffix: ["x", "*"] })).toHaveLength(2);
        expect(await list({ maxDepth: 2 })).toEqual([
          [root, "a"],
          [root, "b"],
        ]);
        expect(await list({ maxDepth: 2, limit: 1, offset: 1 })).toEqual([[root, "b"]]);
      });
      it("everything is below none", async () => {
        await store.put([freshRoot()], "k", { mark: kind.name });
        expect(await store.search([], { filter: { mark: kind.name } })).toHaveLength(1);
      });
      it("what an item does not have is not equal to anything", async () => {
        const root = freshRoot();
        await store.put([root], "k", {});
        expect(await store.search([root], { filter: { colour: { $ne: "red" } } })).toHaveLength(1);
      });
    });

    describe.runIf(kind.like.includes("database"))("as in a database", () => {
      it("a batch is carried out in order", async () => {
        const root = freshRoot();
        const results = await store.batch([
          { namespace: [root], key: "k", value: { n: 1 } },
          { namespace: [root], key: "k" },
          { namespace: [root], key: "k", value: null },
          { namespace: [root], key: "k" },
        ]);
        expect(results[1]).toMatchObject({ value: { n: 1 } });
        expect(results[3]).toBeNull();
      });
      it("what was written last comes first", async () => {
        const root = freshRoot();
        for (const key of ["a", "b", "c"]) {
          await store.put([root], key, {});
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        await store.put([root], "a", { again: true });
        expect((await store.search([root])).map(({ key }) => key)).toEqual(["a", "c", "b"]);
      });
      it("a namespace goes with its last item", async () => {
        const root = freshRoot();
        await store.put([root], "k", {});
        await store.delete([root], "k");
        expect(await store.listNamespaces({ prefix: [root] })).toEqual([]);
      });
      it("a filter may ask for a part of an object", async () => {
        const root = freshRoot();
        await store.put([root], "k", { owner: { name: "zhang", age: 3 } });
        await store.put([root], "l", { owner: { name: "li", age: 3 } });
        expect(keysOf(await store.search([root], { filter: { owner: { name: "li" } } }))).toEqual(["l"]);
      });
      it("later changes of a value that was put or read change nothing", async () => {
        const root = freshRoot();
        const value = { list: [1] };
        await store.put([root], "k", value);
        value.list.push(2);
        (await store.get([root], "k"))?.value.list.push(3);
        expect((await store.get([root], "k"))?.value).toEqual({ list: [1] });
      });
    });
  });
}
