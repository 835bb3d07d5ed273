import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jwt } from "../src/auth/index.ts";
import { createServer, type LogEntry, type TenonServer } from "../src/index.ts";
import type { Reply } from "./ask.ts";
import { type Answer, initialize, legacy, overFetch, overSocket, type Raw, sessionOf } from "./raw-requests.ts";
import { accepts, bearer, createSigner, type Signer, sign } from "./tokens.ts";

// One caller, two tokens in one session of 2025-11-25: one may only read, the other may see the vault and pay out. Whoever got
// hold of the narrow one and of the session's id must get nothing that was made with the wide one.

let signer: Signer;
let server: TenonServer;
let url: string;
let paid = 0;
const logged: LogEntry[] = [];

beforeAll(async () => {
  signer = await createSigner("k1");
  server = createServer({
    name: "bank",
    version: "1",
    logSink: (entry) => logged.push(entry),
    auth: jwt(accepts(signer, { clockSkewMs: 0 })),
  });
  server.tool("balance", {}, () => "12");
  server.tool(
    "slow",
    {},
    (_, { signal }) =>
      new Promise((resolve) => {
        const timer = setTimeout(() => resolve("slept"), 1_500);
        signal.addEventListener("abort", () => clearTimeout(timer));
      }),
  );
  server.tool("secret", { scopes: ["vault"] }, () => "the code is 4711");
  server.tool("pay", { scopes: ["vault"] }, async (_, ctx) => {
    const sure = await ctx.elicit("Pay 900?", ["yes", "no"]);
    if (sure.action !== "accept" || sure.data !== "yes") return `not paid: ${sure.action}`;
    paid += 1;
    return "paid";
  });
  server.tool("slow-secret", { scopes: ["vault"] }, async (_, { signal }) => {
    await new Promise((resolve) => setTimeout(resolve, 700));
    return signal.aborted ? "cancelled" : "the code is 4711";
  });
  server.resource("vault://code", { scopes: ["vault"] }, () => "4711");
  server.resource("news://today", {}, () => "sunny");
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());
beforeEach(() => {
  paid = 0;
});

const token = async (scope: string, expiresIn = 600): Promise<Record<string, string>> =>
  bearer(await sign(signer, "alice", scope, { expiresIn }));
const textOf = (answer: Answer): string =>
  (answer.messages as Reply[]).findLast(({ result }) => result)?.result?.content?.[0]?.text ?? "";
const idOf = (id: number) => ({ message: { id } });
const get = (headers: Record<string, string>): Raw => ({
  method: "GET",
  headers: { accept: "text/event-stream", "mcp-protocol-version": "2025-11-25", ...headers },
});

describe.each(["listen", "fetch"] as const)("a narrower token of the same caller in its session (%s)", (way) => {
  const send = (raw: Raw): Promise<Answer> => (way === "listen" ? overSocket(url, raw) : overFetch(server, raw));
  const open = async (scope: string, capabilities = {}): Promise<Record<string, string>> => {
    const raw = initialize(capabilities);
    return sessionOf(await send({ ...raw, headers: { ...raw.headers, ...(await token(scope)) } }));
  };
  const call = async (session: object, scope: string, name: string, id: number): Promise<Answer> =>
    send(legacy("tools/call", { name }, { headers: { ...session, ...(await token(scope)) }, ...idOf(id) }));

  it("hears no change of what it may not see, though a wider one subscribed to it", async () => {
    const session = await open("read vault");
    for (const [index, uri] of ["vault://code", "news://today"].entries()) {
      const headers = { ...session, ...(await token("read vault")) };
      expect((await send(legacy("resources/subscribe", { uri }, { headers, ...idOf(10 + index) }))).status).toBe(200);
    }
    const heard = async (scope: string): Promise<string> => {
      const stream = send(get({ ...session, ...(await token(scope, 2)) }));
      const telling = setInterval(() => {
        server.notify.resourceUpdated("vault://code");
        server.notify.resourceUpdated("news://today");
      }, 50);
      return (await stream.finally(() => clearInterval(telling))).text;
    };
    const narrow = await heard("read");
    expect(narrow).toContain("news://today");
    expect(narrow).not.toContain("vault://");
    expect(await heard("vault read more")).toContain("vault://code");
  });

  it("is sent nothing again that was made for a wider one", async () => {
    const session = await open("read vault");
    const made = await call(session, "read vault", "secret", 2);
    expect(textOf(made)).toContain("4711");
    const [, first = ""] = /id: (\d+)/.exec(made.text) ?? [];
    const resume = async (scope: string): Promise<Answer> =>
      send(get({ ...session, ...(await token(scope, 2)), "last-event-id": first }));
    const narrow = await resume("read");
    expect(narrow.status).toBe(403);
    expect(narrow.headers["www-authenticate"]).toMatch(/error="insufficient_scope".*scope="[^"]*vault/);
    expect(narrow.text).not.toContain("4711");
    expect((await resume("vault")).status).toBe(403); // the session was used with "read", too
    const wide = await resume("vault read");
    expect(wide.status).toBe(200);
    expect(wide.text).toContain("4711");
  });

  it("does not answer the questions of a wider one's calls", async () => {
    const session = await open("read vault", { elicitation: {} });
    const paying = call(session, "read vault", "pay", 3);
    const answer = async (scope: string, id: number): Promise<number> => {
      const headers = { ...session, ...(await token(scope)) };
      const result = { action: "accept", content: { value: "yes" } };
      const body = JSON.stringify({ jsonrpc: "2.0", id, result });
      return (await send({ ...legacy("ping", {}, { headers }), body })).status;
    };
    await new Promise((resolve) => setTimeout(resolve, 200)); // the question is on its way
    const refused: number[] = [];
    for (const id of [0, 1, 2]) refused.push(await answer("read", id));
    expect(refused).toContain(403);
    expect(paid).toBe(0);
    for (const id of [0, 1, 2]) await answer("read vault", id);
    expect(textOf(await paying)).toBe("paid");
    expect(paid).toBe(1);
  });

  it("does not cancel a wider one's calls", async () => {
    const session = await open("read vault");
    const running = call(session, "read vault", "slow-secret", 4);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const headers = { ...session, ...(await token("read")) };
    const body = JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 4 } });
    expect((await send({ ...legacy("ping", {}, { headers }), body })).status).toBe(403);
    expect(textOf(await running)).toContain("4711");
  });

  it("does not get a wider one's result by using the id of its call", async () => {
    const session = await open("read vault");
    const running = call(session, "read vault", "slow-secret", 5);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const thief = await call(session, "read", "slow", 5);
    expect(thief.status).toBe(400);
    expect(thief.text).toContain("still runs in this session");
    expect(textOf(await running)).toContain("4711");
    expect(textOf(await call(session, "read vault", "secret", 5))).toContain("4711"); // it is free again
  });

  it("may do everything else, and a wider one goes on in it", async () => {
    const session = await open("read");
    expect(textOf(await call(session, "read", "balance", 6))).toBe("12");
    expect(textOf(await call(session, "read vault", "secret", 7))).toContain("4711");
    expect(textOf(await call(session, "read", "balance", 8))).toBe("12");
    expect((await call(session, "read", "secret", 9)).status).toBe(403);
  });
});
