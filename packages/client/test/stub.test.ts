import { describe, expect, it } from "vitest";
import { renderText } from "../src/index.ts";
import { ALL_STUBS, closeAfterEach, connect, start } from "./stub/index.ts";

closeAfterEach();

describe.each(ALL_STUBS)("a scripted server over %s of the %s revision", (_, era, stub) => {
  it("lists and answers", async () => {
    const server = await start(stub({ tools: ["a", "b"] }));
    const client = connect({ s: server.config });
    expect((await client.listTools()).map(({ name }) => name)).toEqual(["mcp_s_a", "mcp_s_b"]);
    expect(client.servers()).toMatchObject([{ era }]);
    expect(renderText((await client.callTool("s", "a", { x: 1 })).content)).toBe('{"x":1}');
    expect(server.count("tools/call")).toBe(1);
  });

  it("does what a call's handler says", async () => {
    const server = await start(stub({ onCall: () => ({ content: [], structuredContent: { n: 1 } }) }));
    expect(await connect({ s: server.config }).callTool("s", "t")).toMatchObject({ structured: { n: 1 } });
  });

  it("that dies in a call fails it once, and works again", async () => {
    const server = await start(
      stub({ onCall: (request, reply) => (request.nth === 1 ? reply.die() : { content: [] }) }),
    );
    const client = connect({ s: server.config });
    await client.listTools();
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "lost", maybeExecuted: true });
    expect(await client.callTool("s", "t")).toMatchObject({ content: [] });
  });

  it("has nothing left open once its client is closed", async () => {
    const server = await start(stub());
    const client = connect({ s: server.config });
    await client.listTools();
    expect(server.open).toBeGreaterThan(0);
    await client.close();
    if (server.config && "command" in server.config) await expect.poll(() => server.open).toBe(0);
  });
});
