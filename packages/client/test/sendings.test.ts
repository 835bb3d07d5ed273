// How often one call reaches its server: what the client repeats by itself and what `retry` repeats are one number.
import { describe, expect, it } from "vitest";
import { retry } from "../src/interceptors/index.ts";
import { closeAfterEach, connect, STUBS, type StubHandler, start, stubHttp } from "./stub/index.ts";

closeAfterEach();
const look = { name: "look", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } };
const quick = { initialDelayMs: 1, maxDelayMs: 5 };
const dies: StubHandler = (_, reply) => reply.die();
const busy: StubHandler = (_, reply) => reply.http(503, { "retry-after": "0" });

describe.each(STUBS)("a read-only call whose server dies every time, over %s", (_, stub) => {
  it("is sent twice by the client alone", async () => {
    const server = await start(stub({ tools: [look], onCall: dies }));
    await expect(connect({ s: server.config }).callTool("s", "look")).rejects.toMatchObject({ code: "lost" });
    expect(server.count("tools/call")).toBe(2);
  });

  it.each([1, 2, 3, 4])("is sent as often as retry({ maxAttempts: %i }) says, and no more", async (attempts) => {
    const server = await start(stub({ tools: [look], onCall: dies }));
    const client = connect({ s: server.config }, { interceptors: [retry({ ...quick, maxAttempts: attempts })] });
    await expect(client.callTool("s", "look")).rejects.toMatchObject({ code: "lost" });
    expect(server.count("tools/call")).toBe(attempts);
    await expect(client.callTool("s", "look")).rejects.toMatchObject({ code: "lost" });
    expect(server.count("tools/call")).toBe(2 * attempts); // each call has its own number
  });
});

describe("a call to a server that is busy every time", () => {
  it.each([
    [undefined, 2],
    [1, 1],
    [3, 3],
  ])("with retry attempts %s is sent %i times", async (attempts, sendings) => {
    const server = await start(stubHttp({ tools: [look], onCall: busy }));
    const interceptors = attempts === undefined ? [] : [retry({ ...quick, maxAttempts: attempts })];
    const client = connect({ s: server.config }, { interceptors });
    await expect(client.callTool("s", "look")).rejects.toMatchObject({ code: "http_error", data: { status: 503 } });
    expect(server.count("tools/call")).toBe(sendings);
  });

  it("that also dies in between is sent twice by the client, whatever the reasons", async () => {
    const onCall: StubHandler = (request, reply) => (request.nth % 2 === 1 ? dies : busy)(request, reply);
    const server = await start(stubHttp({ tools: [look], onCall }));
    await expect(connect({ s: server.config }).callTool("s", "look")).rejects.toMatchObject({ code: "http_error" });
    expect(server.count("tools/call")).toBe(2);
  });
});

describe("a session that its server forgets every time", () => {
  it.each([
    [undefined, 2],
    [3, 3],
  ])("with retry attempts %s is answered %i times with 404", async (attempts, sendings) => {
    const gone: StubHandler = (_, reply) => reply.http(404, {}, "gone");
    const server = await start(stubHttp({ era: "legacy", onCall: gone }));
    const interceptors = attempts === undefined ? [] : [retry({ ...quick, maxAttempts: attempts })];
    const client = connect({ s: server.config }, { interceptors });
    await client.listTools();
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "session_lost" });
    expect(server.count("tools/call")).toBe(sendings);
  });
});

it.each([
  ["the older revision", { era: "legacy" as const }],
  ["a server without the extension", {}],
])("a call of what would be a task elsewhere is sent once over %s: its key says nothing there", async (_, how) => {
  const tools = [{ name: "t", inputSchema: { type: "object" }, _meta: { "dev.tenon/task": "optional" } }];
  const server = await start(stubHttp({ ...how, tools, onCall: dies }));
  await expect(connect({ s: server.config }).callTool("s", "t")).rejects.toMatchObject({ maybeExecuted: true });
  expect(server.count("tools/call")).toBe(1);
});

it("a call that may have run and is not annotated is sent once, with retry and without", async () => {
  const server = await start(stubHttp({ onCall: dies }));
  for (const interceptors of [[], [retry(quick)]]) {
    const client = connect({ s: server.config }, { interceptors });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "lost", maybeExecuted: true });
  }
  expect(server.count("tools/call")).toBe(2);
});
