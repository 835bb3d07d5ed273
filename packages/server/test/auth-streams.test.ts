import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { introspection, jwt, unsafeToken } from "../src/auth/index.ts";
import { type Caller, createServer, type LogEntry, type TenonServer } from "../src/index.ts";
import { rateLimit } from "../src/middleware/index.ts";
import { connect } from "../src/testing/index.ts";
import type { Reply } from "./ask.ts";
import { type Answer, initialize, legacy, modern, overFetch, overSocket, type Raw, sessionOf } from "./raw-requests.ts";
import {
  AUDIENCE,
  accepts,
  bearer,
  createSigner,
  ISSUER,
  type Issuer,
  openIssuer,
  type Signer,
  sign,
} from "./tokens.ts";

let signer: Signer;
let issuer: Issuer;
const open: TenonServer[] = [];
beforeAll(async () => {
  signer = await createSigner("k1");
  issuer = await openIssuer(() => ({ body: "{}" }));
});
afterAll(async () => {
  await Promise.all(open.map((server) => server.close()));
  await issuer.close();
});

const logged: LogEntry[] = [];
function make(auth = jwt(accepts(signer, { clockSkewMs: 0 })), more: object = {}): TenonServer {
  const server = createServer({ name: "s", version: "1", logSink: (entry) => logged.push(entry), auth, ...more });
  open.push(server);
  server.tool("whoami", {}, (_, ctx) => ctx.caller?.subject ?? "nobody");
  server.tool("slow", {}, async (_, ctx) => {
    await ctx.progress(1);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    return "finished";
  });
  server.tool("token", {}, (_, ctx) => ({
    token: unsafeToken(ctx),
    copied: unsafeToken({ caller: { ...ctx.caller } as Caller }),
  }));
  return server;
}
const listen = (token: string): Raw =>
  modern("subscriptions/listen", { notifications: { toolsListChanged: true } }, { headers: bearer(token) });
const textOf = ({ messages }: Answer): string => (messages.at(-1) as Reply).result?.content?.[0]?.text ?? "";
const since = (start: number): number => performance.now() - start;

/** Both ways to serve the same server. */
async function ways(server: TenonServer): Promise<((raw: Raw) => Promise<Answer>)[]> {
  const { url } = await server.listen({ port: 0 });
  return [(raw) => overSocket(url, raw), (raw) => overFetch(server, raw)];
}

describe("when a token ends", () => {
  it("a stream of news ends with it", async () => {
    for (const send of await ways(make())) {
      const start = performance.now();
      const answer = await send(listen(await sign(signer, "u", "", { expiresIn: 2 })));
      expect(answer.status).toBe(200);
      expect(answer.messages).toMatchObject([{ method: "notifications/subscriptions/acknowledged" }]);
      expect(since(start)).toBeLessThan(10_000);
    }
  });
  it("the stream of a session ends with it, and the session goes on with the next token", async () => {
    for (const send of await ways(make())) {
      const first = bearer(await sign(signer, "u", "", { expiresIn: 2 }));
      const session = sessionOf(await send({ ...initialize(), headers: { ...initialize().headers, ...first } }));
      const news = { accept: "text/event-stream", "mcp-protocol-version": "2025-11-25", ...session };
      expect((await send({ method: "GET", headers: { ...news, ...first } })).status).toBe(200);
      const call = (headers: Record<string, string>): Raw => legacy("tools/call", { name: "whoami" }, { headers });
      expect((await send(call({ ...session, ...first }))).status).toBe(401);
      const next = bearer(await sign(signer, "u"));
      expect(textOf(await send(call({ ...session, ...next })))).toBe("u");
    }
  });
  it("a call that began with it may finish", async () => {
    for (const send of await ways(make())) {
      const headers = bearer(await sign(signer, "u", "", { expiresIn: 2 }));
      const meta = { progressToken: "p" };
      expect(textOf(await send(modern("tools/call", { name: "slow" }, { headers, meta })))).toBe("finished");
    }
  });
  it("because it was revoked, an open stream ends after cacheTtlMs", async () => {
    const said = (active: boolean): { body: string } => ({ body: JSON.stringify({ active, sub: "u", aud: AUDIENCE }) });
    issuer.answer = () => said(true);
    const auth = introspection({
      url: issuer.url,
      clientId: "a",
      clientSecret: "b",
      issuer: ISSUER,
      audience: AUDIENCE,
      cacheTtlMs: 1_000,
    });
    const [send] = await ways(make(auth));
    const stream = send?.(listen("opaque"));
    await expect.poll(() => issuer.asked.length, { timeout: 10_000 }).toBeGreaterThan(1);
    issuer.answer = () => ({ status: 500, body: "" }); // an outage alone ends nothing
    const before = issuer.asked.length;
    await expect.poll(() => issuer.asked.length, { timeout: 10_000 }).toBeGreaterThan(before + 1);
    issuer.answer = () => said(false);
    expect((await stream)?.status).toBe(200);
  });
  it("because it lost a scope, an open stream ends too", async () => {
    const said = (scope: string) => () => ({ body: JSON.stringify({ active: true, sub: "u", aud: AUDIENCE, scope }) });
    issuer.answer = said("mcp files:read");
    const auth = introspection({
      url: issuer.url,
      clientId: "a",
      clientSecret: "b",
      issuer: ISSUER,
      audience: AUDIENCE,
      cacheTtlMs: 1_000,
    });
    const [send] = await ways(make(auth));
    let over = false;
    const stream = send?.(listen("opaque")).finally(() => {
      over = true;
    });
    const before = issuer.asked.length;
    await expect.poll(() => issuer.asked.length, { timeout: 10_000 }).toBeGreaterThan(before + 1);
    issuer.answer = said("mcp files:*"); // no less than before
    await expect.poll(() => issuer.asked.length, { timeout: 10_000 }).toBeGreaterThan(before + 2);
    expect(over).toBe(false);
    issuer.answer = said("mcp");
    expect((await stream)?.status).toBe(200);
  });
});

describe.each(["modern", "legacy"] as const)("the SDK's client with a token (%s)", (mode) => {
  it("lists, calls and answers questions, in a session too", async () => {
    const server = make();
    server.tool("ask", {}, async (_, ctx) => {
      const sure = await ctx.elicit("Sure?", ["yes", "no"]);
      return `${ctx.caller?.subject} ${sure.action === "accept" ? sure.data : sure.action}`;
    });
    const { url } = await server.listen({ port: 0 });
    const client = new Client(
      { name: "t", version: "1" },
      {
        capabilities: { elicitation: { form: {} } },
        versionNegotiation: { mode: mode === "modern" ? "auto" : "legacy" },
      },
    );
    client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { value: "yes" } }));
    const requestInit = { headers: bearer(await sign(signer, "zhangsan")) };
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("ask");
    expect((await client.callTool({ name: "ask" })).content).toEqual([{ type: "text", text: "zhangsan yes" }]);
    await client.close();
  });
});

describe("the token itself", () => {
  it("is there for who asks for it by name, and does not travel with a copy of the caller", async () => {
    const token = await sign(signer, "u");
    for (const send of await ways(make())) {
      const answer = await send(modern("tools/call", { name: "token" }, { headers: bearer(token) }));
      expect(JSON.parse(textOf(answer))).toEqual({ token });
    }
  });
  it("is in no header that a handler, a rule or middleware sees where the embedding program named the caller", async () => {
    const seen: unknown[] = [];
    const look = (headers: Headers | undefined): void => void seen.push(Object.fromEntries(headers ?? []));
    const server = createServer({ name: "s", version: "1", logSink: () => undefined });
    open.push(server);
    server.use((request, next) => {
      look(request.headers);
      return next();
    });
    const visible = (_: unknown, { headers }: { headers: Headers | undefined }): boolean => {
      look(headers);
      return true;
    };
    server.tool("look", { visible }, (_, ctx) => look(ctx.headers));
    server.resource("a://b", { visible }, (_, ctx) => {
      look(ctx.headers);
      return "text";
    });
    const caller = { subject: "u", scopes: [], claims: {} };
    const headers = {
      ...bearer("secret-1"),
      cookie: "id=secret-2",
      "proxy-authorization": "secret-3",
      "x-trace": "kept",
    };
    const raws = [modern, legacy].flatMap((request) => [
      request("tools/call", { name: "look" }, { headers }),
      request("tools/list", {}, { headers }),
      request("resources/read", { uri: "a://b" }, { headers }),
    ]);
    for (const raw of raws) await overFetch(server, raw, { caller });
    const opened = initialize();
    const session = sessionOf(
      await overFetch(server, { ...opened, headers: { ...opened.headers, ...headers } }, { caller }),
    );
    await overFetch(server, legacy("tools/call", { name: "look" }, { headers: { ...session, ...headers } }), {
      caller,
    });
    expect(seen.length).toBeGreaterThan(10);
    expect(JSON.stringify(seen)).not.toContain("secret-");
    expect(seen.every((one) => JSON.stringify(one).includes("kept"))).toBe(true);
    // where nobody verified the caller, the handler is the one who may
    seen.length = 0;
    await overFetch(server, modern("tools/call", { name: "look" }, { headers }));
    expect(JSON.stringify(seen)).toContain("secret-1");
  });
  it("is unknown where the embedding program named the caller", async () => {
    const caller = { subject: "u", scopes: [], claims: {} };
    await using client = await connect(make(), { caller });
    expect((await client.callTool("token")).text).toBe("{}");
  });
});

describe("a limit per caller", () => {
  it("counts by the token's subject, whichever token it is", async () => {
    const server = make();
    server.use(rateLimit({ limit: 2, windowMs: 60_000 }));
    for (const send of await ways(server)) {
      const name = `u${Math.random()}`;
      const call = async (subject: string): Promise<string> => {
        const token = await sign(signer, subject, "", { claims: { jti: Math.random() } });
        return textOf(await send(modern("tools/call", { name: "whoami" }, { headers: bearer(token) })));
      };
      expect([await call(name), await call(name)]).toEqual([name, name]);
      expect(await call(name)).toMatch(/^Too many requests/);
      expect(await call(`${name}2`)).toBe(`${name}2`);
    }
  });
});

describe("the address of a server", () => {
  const metadata = async (address: string): Promise<unknown> => (await (await fetch(address)).json()) as unknown;
  it("is what a request was sent to, where the audience is only a name", async () => {
    const server = make(jwt(accepts(signer, { audience: "orders" })));
    const { url } = await server.listen({ port: 0 });
    const { origin } = new URL(url);
    const where = `${origin}/.well-known/oauth-protected-resource/mcp`;
    expect((await overSocket(url, modern("tools/list"))).headers["www-authenticate"]).toBe(
      `Bearer resource_metadata="${where}"`,
    );
    for (const address of [where, `${origin}/.well-known/oauth-protected-resource`]) {
      expect(await metadata(address)).toMatchObject({ resource: url });
    }
  });
  it("is what the configuration says, behind a proxy that gives it another path", async () => {
    const server = make(jwt(accepts(signer, { audience: "orders", resource: "https://api.example/orders/mcp" })));
    const { url } = await server.listen({ port: 0 });
    const { origin } = new URL(url);
    for (const path of ["", "/mcp", "/orders/mcp", "/orders/mcp/"]) {
      expect(await metadata(`${origin}/.well-known/oauth-protected-resource${path}`)).toMatchObject({
        resource: "https://api.example/orders/mcp",
      });
    }
    expect((await fetch(`${origin}/.well-known/oauth-protected-resource/other`)).status).toBe(404);
    expect((await overSocket(url, modern("tools/list"))).headers["www-authenticate"]).toContain(
      'resource_metadata="https://api.example/.well-known/oauth-protected-resource/orders/mcp"',
    );
  });
  it("is what a trusted proxy says that callers used", async () => {
    const http = { allowedHosts: ["orders.example"], trustedProxies: ["loopback"] };
    const server = make(jwt(accepts(signer, { audience: "orders" })), { http });
    const { url } = await server.listen({ port: 0 });
    const headers = { host: "inside", "x-forwarded-host": "orders.example", "x-forwarded-proto": "https" };
    expect((await overSocket(url, modern("tools/list", {}, { headers }))).headers["www-authenticate"]).toBe(
      'Bearer resource_metadata="https://orders.example/.well-known/oauth-protected-resource/mcp"',
    );
    const where = new URL("/.well-known/oauth-protected-resource/mcp", url).href;
    const { messages } = await overSocket(where, { method: "GET", headers });
    expect(messages).toMatchObject([{ resource: "https://orders.example/mcp" }]);
    const token = await sign(signer, "u", "", { claims: { aud: "orders" } });
    const call = modern("tools/call", { name: "whoami" }, { headers: { ...headers, ...bearer(token) } });
    expect(textOf(await overSocket(url, call))).toBe("u");
  });
  it("in clear text on other machines' side is worth a warning, unless a proxy is known to encrypt", async () => {
    const warned = async (options: object): Promise<boolean> => {
      logged.length = 0;
      const server = make(jwt(accepts(signer, { audience: "orders", ...options })), {
        http: { allowedHosts: ["orders"] },
      });
      await server.listen({ port: 0, host: "0.0.0.0" });
      return logged.some(({ message }) => message.includes("in clear text"));
    };
    expect(await warned({})).toBe(true);
    expect(await warned({ resource: "https://orders.example/mcp" })).toBe(false);
  });
});

describe("a server without auth", () => {
  it("warns as it listens of what needs a scope, since nobody can have one there", async () => {
    const warned = async (scopes: string[]): Promise<string[]> => {
      const heard: string[] = [];
      const server = createServer({ name: "s", version: "1", logSink: ({ message }) => heard.push(message) });
      server.tool("refund", { scopes }, () => "refunded");
      server.tool("look", {}, () => "seen");
      await server.listen({ port: 0 });
      await server.close();
      return heard;
    };
    expect(await warned([])).toEqual([]);
    expect(await warned(["pay"])).toEqual([expect.stringMatching(/^refund needs scopes and the server has no `auth`/)]);
  });
});

describe("what comes before the token", () => {
  it("is the announced size of the body: a large one is refused unread", async () => {
    const body = Buffer.alloc(5 * 1024 * 1024);
    for (const send of await ways(make())) {
      const raw = modern("tools/list");
      const length = { "content-length": String(body.length) };
      expect((await send({ ...raw, headers: { ...raw.headers, ...length }, body })).status).toBe(413);
    }
  });
  it("is nothing that runs: without a token not even the lifespan opens", async () => {
    let opened = 0;
    const server = make(undefined, {
      lifespan: async () => {
        opened += 1;
        return { value: 1 };
      },
    });
    expect((await overFetch(server, modern("tools/call", { name: "whoami" }))).status).toBe(401);
    expect(opened).toBe(0);
  });
});

describe("a test client", () => {
  it.each(["modern", "legacy"] as const)("is a caller that was named, or one with a token (%s)", async (era) => {
    const server = make();
    const caller = { subject: "named", scopes: [], claims: {} };
    await using named = await connect(server, { era, caller });
    expect((await named.callTool("whoami")).text).toBe("named");
    await using holder = await connect(server, { era, headers: bearer(await sign(signer, "holder")) });
    expect((await holder.callTool("whoami")).text).toBe("holder");
    await expect(connect(server, { era })).rejects.toThrow("A bearer token is needed");
  });
});
