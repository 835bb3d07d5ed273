import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { InMemoryStore } from "@langchain/langgraph";
import { PostgresStore } from "@langchain/langgraph-checkpoint-postgres/store";
import { createAgent, HumanMessage, type ToolRuntime, tool } from "langchain";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { program } from "../../../test/programs.ts";
import { SqliteStore } from "../src/sqlite-store/sqlite-store.ts";
import { callingModel } from "./scripted-model.ts";
import { storeSuite } from "./store-suite.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-memory-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string): string => join(folder, name);

storeSuite({ name: "InMemoryStore", open: () => new InMemoryStore(), like: ["memory"] });
storeSuite({ name: "SqliteStore", open: () => new SqliteStore(file("suite.db")), like: ["memory", "database"] });
storeSuite({ name: "SqliteStore in memory", open: () => new SqliteStore(":memory:"), like: ["memory", "database"] });

const url = process.env.TENON_TEST_DATABASE_URL;
if (url === undefined) {
  it.skip("long-term memory in PostgresStore: set TENON_TEST_DATABASE_URL to run it", () => undefined);
} else {
  const schema = `tenon_memory_${process.pid}_${Date.now()}`;
  afterAll(async () => {
    const admin = new pg.Client(url);
    await admin.connect();
    await admin.query(`drop schema if exists ${schema} cascade`);
    await admin.end();
  });
  storeSuite({
    name: "PostgresStore",
    open: () => PostgresStore.fromConnString(url, { schema }),
    like: ["database"],
  });
  it("PostgresStore has ways of its own, which the documentation names", async () => {
    const store = PostgresStore.fromConnString(url, { schema });
    await store.put(["ways", "ab"], "k", { n: 1 });
    expect(await store.search(["ways", "a"])).toHaveLength(1);
    await expect(store.put(["ways", "a_b"], "k", {})).rejects.toThrow("wildcards");
    expect(await store.listNamespaces({ prefix: ["*", "ab"] })).toEqual([]);
    expect(await store.listNamespaces({ prefix: ["ways"], maxDepth: 1 })).toEqual([]);
    expect(await store.search(["ways"], { filter: { n: { $gtt: 5 } as never } })).toHaveLength(1);
    await store.stop();
  });
}

describe("SqliteStore", () => {
  it("keeps its file for the owner, and what it holds when it is stopped and opened again", async () => {
    const path = join(folder, "deep", "kept.db");
    const first = new SqliteStore(path);
    await first.put(["user_prefs"], "u_001", { language: "en" });
    await first.stop();
    await first.stop();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await expect(first.get(["user_prefs"], "u_001")).rejects.toMatchObject({ code: "store_closed" });
    await using second = new SqliteStore(path);
    expect((await second.get(["user_prefs"], "u_001"))?.value).toEqual({ language: "en" });
  });

  it("is shared by processes that open it at the same time", async () => {
    const path = file(`shared-${randomUUID()}.db`);
    const writer = await program("./store-writer.ts", import.meta.url);
    const write = () => promisify(execFile)(process.execPath, [writer, path], { timeout: 60_000 });
    const said = await Promise.all([write(), write(), write()]);
    expect(said.map(({ stderr }) => stderr)).toEqual(["", "", ""]);
    await using store = new SqliteStore(path);
    expect(await store.search(["n"], { limit: 100 })).toHaveLength(60);
    expect(await store.listNamespaces({ prefix: ["n"] })).toHaveLength(3);
  }, 90_000);

  it("writes all of a batch or nothing", async () => {
    await using store = new SqliteStore(":memory:");
    const batch = store.batch([
      { namespace: ["a"], key: "k", value: { n: 1 } },
      { namespace: ["a.b"], key: "k", value: { n: 2 } },
    ]);
    await expect(batch).rejects.toMatchObject({ code: "namespace" });
    expect(await store.get(["a"], "k")).toBeNull();
  });

  it("says that it cannot search by meaning, and what to do", async () => {
    await using store = new SqliteStore(":memory:");
    await expect(store.search(["a"], { query: "likes" })).rejects.toMatchObject({
      code: "no_index",
      message: expect.stringContaining("use `filter`"),
    });
  });

  it("refuses values, filters and options it does not understand", async () => {
    await using store = new SqliteStore(":memory:");
    await expect(store.put(["a"], "k", "text" as never)).rejects.toMatchObject({ code: "value" });
    await expect(store.search(["a"], { filter: { n: { $gtt: 1 } } })).rejects.toThrow('did you mean "$gt"?');
    await store.put(["a"], "k", {});
    await expect(store.search(["a"], { filter: { n: { $in: 1 } } })).rejects.toMatchObject({ code: "filter" });
    expect(() => new SqliteStore("")).toThrow("needs the path");
    expect(() => new SqliteStore("x", { tll: {} } as never)).toThrow('has no option "tll"');
    expect(() => new SqliteStore("x", { ttl: { defaultTTL: 1 } } as never)).toThrow('did you mean "defaultTtl"?');
    expect(() => new SqliteStore("x", { ttl: { defaultTtl: -1 } })).toThrow("a number of minutes, 0 or more, given -1");
    await expect(store.put(["a"], "k", {}, undefined, { ttl: Number.NaN })).rejects.toMatchObject({ code: "ttl" });
  });

  it("forgets items when their time is up", async () => {
    await using store = new SqliteStore(":memory:", { ttl: { defaultTtl: 60 } });
    const soon = 50 / 60_000; // minutes
    await store.put(["a"], "short", {}, undefined, { ttl: soon });
    await store.put(["a"], "long", {});
    await sleep(60);
    expect(await store.get(["a"], "short")).toBeNull();
    expect((await store.search(["a"])).map(({ key }) => key)).toEqual(["long"]);
    await store.put(["gone"], "k", {}, undefined, { ttl: soon });
    await sleep(60);
    expect(await store.listNamespaces()).toEqual([["a"]]);
    expect(await store.sweepExpiredItems()).toBe(2);
    expect(await store.sweepExpiredItems()).toBe(0);
  });

  it("sweeps as seldom as it is told to", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on("warning", note);
    try {
      await using store = new SqliteStore(":memory:", { ttl: { sweepIntervalMinutes: 90 * 24 * 60 } });
      store.start();
      await sleep(20);
    } finally {
      process.off("warning", note);
    }
    expect(warnings.map(({ name }) => name)).not.toContain("TimeoutOverflowWarning");
  });

  it("keeps what is read, when told so", async () => {
    await using store = new SqliteStore(":memory:", { ttl: { defaultTtl: 60, refreshOnRead: true } });
    const short = { ttl: 5_000 / 60_000 };
    for (const key of ["got", "found"]) await store.put(["a", key], key, {}, undefined, short);
    await store.put(["b"], "left", {}, undefined, { ttl: 50 / 60_000 });
    await store.get(["a", "got"], "got");
    await store.search(["a", "found"]);
    await sleep(60);
    expect((await store.search([])).map(({ key }) => key).sort()).toEqual(["found", "got"]);
  });

  it("is what a tool of an agent reads and writes, through every restart", async () => {
    const path = file("agent.db");
    const count = tool(
      async (_args: unknown, runtime: ToolRuntime) => {
        const store = runtime.store as unknown as SqliteStore; // LangChain types it as its key-value store
        const seen = Number((await store.get(["visits"], "u_001"))?.value.n ?? 0) + 1;
        await store.put(["visits"], "u_001", { n: seen });
        return `visit ${seen}`;
      },
      { name: "count", description: "Counts", schema: { type: "object", properties: {} } },
    );
    const replies: string[] = [];
    for (let restart = 0; restart < 3; restart += 1) {
      await using store = new SqliteStore(path);
      const agent = createAgent({ model: callingModel({ name: "count" }), tools: [count], store });
      const { messages } = await agent.invoke({ messages: [new HumanMessage("hello")] });
      replies.push(messages.at(-1)?.text ?? "");
    }
    expect(replies).toEqual(["done: success=visit 1", "done: success=visit 2", "done: success=visit 3"]);
  });
});
