import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { alice, ask, call, root, said } from "../../test/ask.ts";
import { createServer, ToolError } from "../index.ts";
import { type CacheOptions, cache } from "./cache.ts";

function counting(options: Partial<CacheOptions> = {}) {
  let runs = 0;
  const readOnly = { readOnlyHint: true };
  const server = createServer({ name: "test", version: "1", logSink: () => undefined })
    .use(cache({ ttlMs: 60_000, ...options }))
    .tool("read", { input: z.object({ id: z.string() }), annotations: readOnly }, ({ id }, ctx) => ({
      id,
      who: ctx.caller?.subject,
      run: ++runs,
    }))
    .tool("write", {}, () => `run ${++runs}`)
    .tool("fails", { annotations: readOnly }, () => {
      throw new ToolError(`run ${++runs}`);
    })
    .tool("asks", { annotations: readOnly }, async (_, ctx) => {
      runs += 1;
      return (await ctx.elicit("Sure?", ["yes"])).action;
    })
    .resource("a://{id}", {}, ({ id }) => `${id} run ${++runs}`);
  return { server, runs: () => runs };
}

describe("cache", () => {
  it("gives a read-only tool's result again for the same arguments", async () => {
    const { server } = counting();
    const first = said(await call(server, "read", { id: "a" }));
    expect(said(await call(server, "read", { id: "a" }))).toBe(first);
    expect(said(await call(server, "read", { id: "b" }))).not.toBe(first);
  });
  it("gives a resource again, by its URI", async () => {
    const { server } = counting();
    const read = async (uri: string) => JSON.stringify((await ask(server, "resources/read", { uri })).result?.contents);
    expect(await read("a://1")).toBe(await read("a://1"));
    expect(await read("a://2")).toContain("2 run 2");
  });
  it("never gives one caller what another got", async () => {
    const { server } = counting();
    const mine = said(await call(server, "read", { id: "a" }, { caller: alice }));
    const theirs = said(await call(server, "read", { id: "a" }, { caller: root }));
    expect([mine, theirs].map((json) => JSON.parse(json).who)).toEqual(["alice", "root"]);
    // the same person with fewer scopes is another caller
    expect(said(await call(server, "read", { id: "a" }, { caller: { ...alice, scopes: [] } }))).not.toBe(mine);
  });
  it("keeps apart what one person's tokens were made for, and gives the same to the next token", async () => {
    const { server } = counting();
    const read = async (claims: Record<string, unknown>): Promise<string> =>
      said(await call(server, "read", { id: "a" }, { caller: { ...alice, claims } }));
    const mine = await read({ org: "north", exp: 1, iat: 0, jti: "a" });
    expect(await read({ org: "south", exp: 1, iat: 0, jti: "b" })).not.toBe(mine);
    expect(await read({ org: "north", exp: 2, iat: 1, jti: "c" })).toBe(mine);
  });
  it("keeps the eras apart", async () => {
    const { server, runs } = counting();
    await call(server, "read", { id: "a" });
    await call(server, "read", { id: "a" }, { era: "legacy" });
    expect(runs()).toBe(2);
  });
  it.each(["write", "fails", "asks"])("keeps nothing of %s", async (name) => {
    const { server, runs } = counting();
    await call(server, name);
    await call(server, name);
    expect(runs()).toBe(2);
  });
  it("forgets after its time", async () => {
    const { server, runs } = counting({ ttlMs: 20 });
    await call(server, "read", { id: "a" });
    await sleep(40);
    await call(server, "read", { id: "a" });
    expect(runs()).toBe(2);
  });
  it("keeps a bounded number, and nothing huge", async () => {
    const few = counting({ maxEntries: 2 });
    for (const id of ["a", "b", "a", "c", "a", "b"]) await call(few.server, "read", { id });
    expect(few.runs()).toBe(4); // a, b, c, and b again, which was used longest ago when c came
    const small = counting({ maxEntryChars: 10 });
    await call(small.server, "read", { id: "a" });
    await call(small.server, "read", { id: "a" });
    expect(small.runs()).toBe(2);
  });
  it("needs a time", () => expect(() => cache({ ttlMs: 0 })).toThrow("ttlMs must be positive"));
});
