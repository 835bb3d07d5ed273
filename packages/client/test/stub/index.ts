// Scriptable servers that speak raw JSON-RPC, for whatever a well-behaved one never does. A case is about five lines:
//
//   it.each(STUBS)("%s: …", async (_, stub) => {
//     const server = await start(stub({ tools: ["t"], onCall: (request, reply) => reply.die() }));
//     const client = connect({ s: server.config });
//     await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "lost" });
//   });
import { afterEach } from "vitest";
import { type Client, type ClientOptions, createClient } from "../../src/index.ts";
import type { Stub, StubBehavior } from "./behavior.ts";
import { stubHttp } from "./http.ts";
import { stubStdio } from "./stdio.ts";

export type { Stub, StubBehavior, StubHandler, StubReply, StubRequest } from "./behavior.ts";
export { type HttpBehavior, type HttpStub, stubHttp } from "./http.ts";
export { isAlive, type StdioStub, type StubChild, stubStdio } from "./stdio.ts";

type MakeStub = (behavior?: StubBehavior) => Promise<Stub>;

/** Both transports, for `it.each`. */
export const STUBS: readonly (readonly [string, MakeStub])[] = [
  ["stdio", (behavior) => stubStdio(behavior)],
  ["http", (behavior) => stubHttp(behavior)],
];

/** Both transports in both revisions: `[transport, era, make]`. */
export const ALL_STUBS: readonly (readonly [string, "modern" | "legacy", MakeStub])[] = STUBS.flatMap(([name, make]) =>
  (["modern", "legacy"] as const).map(
    (era) => [name, era, (behavior?: StubBehavior) => make({ era, ...behavior })] as const,
  ),
);

const clients: { close(): Promise<void> }[] = [];
const stubs: { close(): Promise<void> }[] = [];

/** Closes what `start` and `connect` made, after each test; call it once at the top of a test file. */
export function closeAfterEach(): void {
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await Promise.all(stubs.splice(0).map((stub) => stub.close()));
  });
}

/** The stub, closed after the test. */
export async function start<S extends { close(): Promise<void> }>(stub: Promise<S>): Promise<S> {
  const started = await stub;
  stubs.push(started);
  return started;
}

/** A client of these servers, closed after the test. */
export function connect(servers: ClientOptions["servers"], more: Omit<ClientOptions, "servers"> = {}): Client {
  const client = createClient({ servers, ...more });
  clients.push(client);
  return client;
}
