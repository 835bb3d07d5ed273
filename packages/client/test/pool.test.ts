import { describe, expect, it } from "vitest";
import { closeAfterEach, connect, start, stubHttp } from "./stub/index.ts";

closeAfterEach();

describe("the connections to one origin", () => {
  it("are a hundred at most, and twenty stay when a burst is over", async () => {
    let inside = 0;
    let most = 0;
    let release = () => {};
    const go = new Promise<void>((resolve) => {
      release = resolve;
    });
    const server = await start(
      stubHttp({
        onCall: async (_, reply) => {
          most = Math.max(most, ++inside);
          await go;
          inside--;
          reply.result({ content: [] });
        },
      }),
    );
    const client = connect({ s: server.config });
    await client.listTools();
    const calls = Array.from({ length: 150 }, () => client.callTool("s", "t"));
    await expect.poll(() => most).toBe(100);
    expect(server.open).toBeLessThanOrEqual(101); // one more only listens
    release();
    expect(await Promise.all(calls)).toHaveLength(150);
    expect(most).toBe(100);
    await expect.poll(() => server.open).toBeLessThanOrEqual(21);
    expect(server.open).toBeGreaterThan(10);
    const opened = server.opened;
    await Promise.all(Array.from({ length: 20 }, () => client.callTool("s", "t")));
    expect(server.opened).toBe(opened);
  });

  it("leave room for answers to questions, although every one of them has a call that waits for its answer", async () => {
    const question = { message: "Sure?", requestedSchema: { type: "object", properties: {} } };
    const server = await start(
      stubHttp({
        era: "legacy",
        onCall: async (_, reply) => {
          reply.stream();
          const { action } = await reply.ask("elicitation/create", question);
          reply.result({ content: [{ type: "text", text: String(action) }] });
        },
      }),
    );
    let asked = 0;
    let all = () => {};
    const together = new Promise<void>((resolve) => {
      all = resolve;
    });
    const elicitation = async () => {
      if (++asked === 100) all();
      await together;
      return { action: "decline" as const };
    };
    const client = connect({ s: server.config }, { elicitation });
    const calls = Array.from({ length: 100 }, () => client.callTool("s", "t", {}, { timeoutMs: 5_000 }));
    for (const result of await Promise.all(calls)) expect(result.content).toEqual([{ type: "text", text: "decline" }]);
  });
});
