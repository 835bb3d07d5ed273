import { inspect } from "node:util";
import { type OutcomeStore, openMemory } from "@tenon/store";
import { describe, expect, it } from "vitest";
import { timelyStore } from "../src/handler/within.ts";
import { createServer, type LogEntry, type Middleware } from "../src/index.ts";
import { ask, call, said } from "./ask.ts";

// A handler has a time limit; so has what stands around it. A store, a lifespan or middleware that never answers must not hold
// calls, and with them connections and memory, for ever.

const never = (): Promise<never> => new Promise(() => {});

function make(more: object = {}) {
  const logged: LogEntry[] = [];
  const server = createServer({
    name: "s",
    version: "1",
    timeoutMs: 200,
    logSink: (entry) => logged.push(entry),
    ...more,
  });
  server.tool("t", {}, () => "done");
  server.tool("slow", { timeoutMs: 2_000 }, async () => {
    await new Promise((resolve) => setTimeout(resolve, 500));
    return "done late";
  });
  server.resource("a://b", {}, () => "text");
  return { server, logged };
}

describe("middleware", () => {
  const after: Middleware = async (_, next) => {
    await next();
    return never();
  };
  it.each<[string, Middleware]>([
    ["before the handler", never],
    ["after it", after],
  ])("that never answers %s is given up after the server's time limit", async (_, middleware) => {
    const { server, logged } = make();
    server.use(middleware);
    expect(said(await call(server, "t"))).toMatch(/given up: the server did nothing for 0.2 s/);
    expect((await ask(server, "resources/read", { uri: "a://b" })).error?.data).toMatchObject({ code: "timeout" });
    expect(logged.filter(({ message }) => message.includes("neither answered nor called next()"))).toHaveLength(2);
  });
  it("is not charged with what the handler takes", async () => {
    const { server } = make();
    server.use((_, next) => next());
    expect(said(await call(server, "slow"))).toBe("done late");
  });
});

describe("a lifespan", () => {
  it("that never opens is told to whoever asks, and may open later", async () => {
    let open: (value: { value: number }) => void = () => undefined;
    const opening = new Promise<{ value: number }>((resolve) => {
      open = resolve;
    });
    const { server, logged } = make({ lifespan: () => opening });
    expect(said(await call(server, "t"))).toMatch(/failed/);
    expect(logged.some((entry) => inspect(entry).includes("has not opened within 200 ms"))).toBe(true);
    open({ value: 1 });
    expect(said(await call(server, "t"))).toBe("done");
  });
});

describe("a store", () => {
  const operations = ["claim", "begin", "record", "renew", "finish", "release", "putBlob", "getBlob"] as const;
  it("has an end for each of its operations", async () => {
    const hung = {
      ...openMemory().outcomes,
      ...Object.fromEntries(operations.map((name) => [name, never])),
    } as OutcomeStore;
    const store = timelyStore(hung, 50);
    const lease = { key: "k", token: "t" } as never;
    const done = [
      store.claim({ key: "k", digest: "d", ttlMs: 1 }),
      store.begin(lease),
      store.record(lease, "n", 1),
      store.renew(lease),
      store.finish(lease, 1, { ttlMs: 1 }),
      store.release(lease),
      store.putBlob("i", "t", 1),
      store.getBlob("i"),
    ];
    for (const [i, one] of (await Promise.allSettled(done)).entries()) {
      expect(one).toMatchObject({
        status: "rejected",
        reason: { code: "store_timeout", message: expect.stringContaining(String(operations[i])) },
      });
    }
  });
});
