// What a call waits for besides its answer comes out of the call's own time.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { closeAfterEach, connect, type StubHandler, start, stubHttp } from "./stub/index.ts";

closeAfterEach();
const silent: StubHandler = () => {};
const timeoutMs = 700;
const late = { code: "timeout", maybeExecuted: false };
const lockFile = () => join(mkdtempSync(join(tmpdir(), "tenon-deadlines-")), "tenon.lock");

describe("the list of tools that a call waits for", () => {
  it.each([
    ["pin", () => [{ pin: lockFile() }, {}] as const],
    ["grants", () => [{}, { grants: { effects: ["readOnly" as const] } }] as const],
  ])("before it may pass (%s) ends with timeoutMs of the call, and nothing is sent", async (_, options) => {
    const [more, trust] = options();
    const server = await start(stubHttp({ on: { "tools/list": silent } }));
    const client = connect({ s: { ...server.config, ...trust } }, more);
    const began = performance.now();
    const asked = client.callTool("s", "t", {}, { timeoutMs });
    await expect(asked).rejects.toMatchObject({ ...late, server: "s" });
    await expect(asked).rejects.toThrow("it waited for the list of its tools");
    expect(performance.now() - began).toBeLessThan(10_000); // a list alone may take a minute
    expect(server.count("tools/call")).toBe(0);
  });

  it("does not hurry a person who is asked about the tools", async () => {
    const server = await start(stubHttp());
    const onFirstUse = () => new Promise<boolean>((resolve) => setTimeout(resolve, 3 * timeoutMs, true));
    const client = connect({ s: server.config }, { pin: { file: lockFile(), onFirstUse } });
    expect(await client.callTool("s", "t", {}, { timeoutMs })).toMatchObject({ isError: false });
  });

  it("after a call was refused for its headers ends with timeoutMs of the call", async () => {
    const mismatch: StubHandler = (_, reply) => reply.error(-32_020, "Header mismatch");
    let lists = 0;
    const list: StubHandler = () =>
      ++lists === 1 ? { tools: [{ name: "t", inputSchema: { type: "object" } }], ttlMs: 60_000 } : undefined;
    const server = await start(stubHttp({ on: { "tools/list": list }, onCall: mismatch }));
    const client = connect({ s: server.config });
    await client.listTools();
    const began = performance.now();
    await expect(client.callTool("s", "t", {}, { timeoutMs })).rejects.toMatchObject(late);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(server.count("tools/call")).toBe(1);
  });

  it("leaves the call what is left of its time", async () => {
    const slow: StubHandler = async () => {
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return { tools: [{ name: "t", inputSchema: { type: "object" } }], ttlMs: 60_000 };
    };
    const server = await start(stubHttp({ on: { "tools/list": slow }, onCall: silent }));
    const client = connect({ s: server.config }, { pin: lockFile() });
    const began = performance.now();
    const asked = client.callTool("s", "t", {}, { timeoutMs: 2_500 });
    await expect(asked).rejects.toMatchObject({ code: "timeout", maybeExecuted: true });
    expect(performance.now() - began).toBeLessThan(4_400); // not 2,000 and then 2,500
  });

  it("may be waited for by others for longer", async () => {
    let answer = () => {};
    const waiting = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const list: StubHandler = async () => {
      await waiting;
      return { tools: [{ name: "t", inputSchema: { type: "object" } }], ttlMs: 60_000 };
    };
    const server = await start(stubHttp({ on: { "tools/list": list } }));
    const client = connect({ s: server.config }, { pin: lockFile() });
    const patient = client.callTool("s", "t");
    await expect(client.callTool("s", "t", {}, { timeoutMs: 300 })).rejects.toMatchObject(late);
    answer();
    expect(await patient).toMatchObject({ isError: false });
    expect(server.count("tools/list")).toBe(1);
  });
});
