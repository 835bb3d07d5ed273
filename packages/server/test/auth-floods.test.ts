import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jwt } from "../src/auth/index.ts";
import { createServer, type TenonServer } from "../src/index.ts";
import { type Answer, initialize, legacy, modern, overFetch, type Raw, sessionOf } from "./raw-requests.ts";
import { accepts, bearer, createSigner, type Signer, sign } from "./tokens.ts";

// What one caller with a good token may take of what all callers share.

let signer: Signer;
let server: TenonServer;
beforeAll(async () => {
  signer = await createSigner("k1");
  const auth = jwt(accepts(signer));
  server = createServer({
    name: "small",
    version: "1",
    logSink: () => undefined,
    auth,
    http: { sessions: { max: 4 } },
  });
  server.tool("work", {}, () => "done");
});
afterAll(() => server.close());

describe("a caller who floods a server", () => {
  it("with sessions ends its own, and nobody else's", async () => {
    const as = async (subject: string, raw: Raw): Promise<Answer> =>
      overFetch(server, { ...raw, headers: { ...raw.headers, ...bearer(await sign(signer, subject)) } });
    const listed = async (subject: string, session: Record<string, string>): Promise<number> =>
      (await as(subject, legacy("tools/list", {}, { headers: session }))).status;
    const alice = sessionOf(await as("alice", initialize()));
    const bob = sessionOf(await as("bob", initialize()));
    const first = sessionOf(await as("mallory", initialize()));
    for (let i = 0; i < 6; i++) await as("mallory", initialize());
    expect([await listed("alice", alice), await listed("bob", bob), await listed("mallory", first)]).toEqual([
      200, 200, 404,
    ]);
  });
  it("with subscriptions leaves some for others, and has its own back when they end", async () => {
    const open: AbortController[] = [];
    const listen = async (subject: string): Promise<string> => {
      const { headers = {}, body } = modern("subscriptions/listen", { notifications: { toolsListChanged: true } });
      const auth = bearer(await sign(signer, subject, "mcp"));
      const stop = new AbortController();
      open.push(stop);
      const request = new Request("http://127.0.0.1/mcp", {
        method: "POST",
        headers: { host: "127.0.0.1", ...headers, ...auth },
        body: String(body),
        signal: stop.signal,
      });
      const response = await server.fetch(request);
      const { value } = (await response.body?.getReader().read()) ?? {};
      return Buffer.from(value ?? []).toString();
    };
    for (let i = 0; i < 256; i++) expect(await listen("mallory")).toContain("acknowledged");
    expect(await listen("mallory")).toContain("256 subscriptions");
    expect(await listen("alice")).toContain("acknowledged");
    for (const stop of open) stop.abort();
    await expect.poll(() => listen("mallory")).toContain("acknowledged");
    for (const stop of open) stop.abort();
  });
});
