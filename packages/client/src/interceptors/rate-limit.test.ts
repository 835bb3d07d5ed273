import { describe, expect, it } from "vitest";
import { clientOf, shop } from "../../test/shop.ts";
import { rateLimit } from "./rate-limit.ts";

describe("rateLimit", () => {
  it("refuses what is too much, says when there is room again, and sends nothing", async () => {
    const server = await shop({ t: {} });
    const client = clientOf(server.url, { interceptors: [rateLimit({ limit: 2, windowMs: 60_000 })] });
    await client.callTool("s", "t");
    await client.callTool("s", "t");
    const before = Date.now();
    const refused = await client.callTool("s", "t").catch((error: unknown) => error);
    expect(refused).toMatchObject({
      name: "ExecutionError",
      code: "rate_limited",
      server: "s",
      retryable: true,
      maybeExecuted: false,
      message: expect.stringMatching(/2 calls in 60 s.*try again in (29|30) s/),
    });
    const { retryAfterMs, at } = (refused as { data: { retryAfterMs: number; at: string } }).data;
    expect(retryAfterMs).toBeGreaterThan(20_000);
    expect(Date.parse(at)).toBeGreaterThan(before + 20_000);
    expect(server.runs.t).toBe(2);
  });

  it("counts per server, per tool, or by a key of one's own", async () => {
    const server = await shop({ t: {}, u: {} });
    const open = (per: Parameters<typeof rateLimit>[0]["per"]) =>
      clientOf(server.url, { interceptors: [rateLimit({ limit: 1, windowMs: 60_000, per })] });
    const perServer = open("server");
    await perServer.callTool("s", "t");
    await expect(perServer.callTool("s", "u")).rejects.toMatchObject({ code: "rate_limited" });
    const perTool = open("tool");
    await perTool.callTool("s", "t");
    await perTool.callTool("s", "u");
    await expect(perTool.callTool("s", "t")).rejects.toMatchObject({ code: "rate_limited" });
    const perUser = open(({ runtime }) => String(runtime.context));
    await perUser.callTool("s", "t", {}, { runtime: { context: "ann" } });
    await perUser.callTool("s", "t", {}, { runtime: { context: "bob" } });
    await expect(perUser.callTool("s", "t", {}, { runtime: { context: "ann" } })).rejects.toThrow("try again");
  });

  it("lets calls wait for their turn, up to a limit", async () => {
    const server = await shop({ t: {} });
    const limit = rateLimit({ limit: 1, windowMs: 200, maxWaitMs: 500 });
    const client = clientOf(server.url, { interceptors: [limit] });
    const started = performance.now();
    const all = await Promise.allSettled(Array.from({ length: 5 }, () => client.callTool("s", "t")));
    const refused = all.filter(({ status }) => status === "rejected").length;
    expect([2, 3]).toContain(all.length - refused);
    expect(performance.now() - started).toBeGreaterThan(190);
    expect(server.runs.t).toBe(all.length - refused);
  });

  it("gives the turn of a cancelled call to the next", async () => {
    const server = await shop({ t: {} });
    const limit = rateLimit({ limit: 1, windowMs: 30_000, maxWaitMs: 40_000 });
    const client = clientOf(server.url, { interceptors: [limit] });
    await client.callTool("s", "t");
    for (let i = 0; i < 3; i++) {
      // each waits for the same turn: without giving it back the second would be refused
      const signal = AbortSignal.timeout(50);
      await expect(client.callTool("s", "t", {}, { signal })).rejects.toMatchObject({
        code: "cancelled",
        maybeExecuted: false,
      });
    }
  });

  it("remembers a bounded number of keys", async () => {
    const server = await shop({ t: {} });
    const limit = rateLimit({ limit: 1, windowMs: 60_000, maxKeys: 2, per: ({ args }) => String(args.who) });
    const client = clientOf(server.url, { interceptors: [limit] });
    for (const who of ["a", "b", "c"]) await client.callTool("s", "t", { who });
    await client.callTool("s", "t", { who: "a" }); // forgotten, since it was idle longest
    await expect(client.callTool("s", "t", { who: "c" })).rejects.toMatchObject({ code: "rate_limited" });
  });

  it("refuses limits that make no sense", () => {
    expect(() => rateLimit({ limit: 0, windowMs: 1 })).toThrow("positive");
    expect(() => rateLimit({ limit: 1, windowMs: 1, per: "client" as never })).toThrow('"server", "tool"');
  });
});
