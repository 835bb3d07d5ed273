import { createHmac } from "node:crypto";
import { CompactSign } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { anyOf, jwt } from "../src/auth/index.ts";
import { createServer, type LogEntry, type TenonServer } from "../src/index.ts";
import { answering, type Reply } from "./ask.ts";
import {
  type Answer,
  initialize,
  legacy,
  META,
  modern,
  overFetch,
  overSocket,
  type Raw,
  sessionOf,
} from "./raw-requests.ts";
import { AUDIENCE, bearer, createSigner, forge, ISSUER, type Issuer, openIssuer, type Signer, sign } from "./tokens.ts";

// What an attacker may try against a server that asks for a token, by request: each line on both ways to serve and both revisions.
// Every attack is refused before a handler runs, and what is refused is in the log without the token.

const logged: LogEntry[] = [];
let handled = 0;
let issuer: Issuer;
/** Elsewhere: what a token or a header may try to lure the server to. */
let lure: Issuer;
let signer: Signer;
let rsa: Signer;
let mallory: Signer;
let server: TenonServer;
let url: string;

beforeAll(async () => {
  [signer, rsa, mallory] = await Promise.all([
    createSigner("k1"),
    createSigner("r1", "RS256"),
    createSigner("k1"), // the same name, another key
  ]);
  const keys = JSON.stringify({ keys: [signer.jwk, rsa.jwk] });
  issuer = await openIssuer(() => ({ body: keys }));
  lure = await openIssuer(() => ({ body: JSON.stringify({ keys: [mallory.jwk] }) }));
  server = createServer({
    name: "orders",
    version: "1.0.0",
    logSink: (entry) => logged.push(entry),
    auth: jwt({ issuer: ISSUER, audience: AUDIENCE, jwksUrl: `${issuer.url}/jwks`, requiredScopes: ["mcp"] }),
  });
  server.tool("work", {}, () => {
    handled += 1;
    return "done";
  });
  server.tool("refund", { scopes: ["orders:refund"] }, () => {
    handled += 1;
    return "refunded";
  });
  server.tool("relay", {}, (_, ctx) =>
    JSON.stringify({ caller: ctx.caller, headers: [...(ctx.headers ?? [])], meta: ctx.meta }),
  );
  server.tool("mine", {}, (_, ctx) => `only for ${ctx.caller?.subject}`);
  server.tool("ask", {}, async (_, ctx) => (await ctx.elicit("Sure?", ["yes", "no"])).action);
  server.resource("plans://merger", { visible: (caller) => caller?.subject === "root" }, () => "secret");
  server.resource("file://{+path}", { scopes: ["files"] }, ({ path }) => path);
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(async () => {
  await server.close();
  await Promise.all([issuer.close(), lure.close()]);
});
beforeEach(() => {
  handled = 0;
  logged.length = 0;
});

const good = (): Promise<string> => sign(signer, "alice", "mcp");
const now = (): number => Math.floor(Date.now() / 1000);
const claims = { iss: ISSUER, aud: AUDIENCE, sub: "root", client_id: "desk", scope: "mcp orders:refund" };
const valid = (): object => ({ ...claims, exp: now() + 600 });
/** A token of ours with a part of it replaced. */
const altered = async (part: 0 | 1, change: (value: Record<string, unknown>) => object): Promise<string> => {
  const parts = (await good()).split(".");
  const value = JSON.parse(Buffer.from(parts[part] ?? "", "base64url").toString());
  parts[part] = Buffer.from(JSON.stringify(change(value))).toString("base64url");
  return parts.join(".");
};
const withHmac = (secret: string | Buffer, alg = "HS256"): string => {
  const unsigned = forge({ alg, typ: "at+jwt", kid: "r1" }, valid()).slice(0, -1);
  return `${unsigned}.${createHmac("sha256", secret).update(unsigned).digest("base64url")}`;
};
const signedBy = (
  by: Signer,
  header: Record<string, unknown> = {},
  more: Record<string, unknown> = {},
): Promise<string> => sign(by, "root", "mcp orders:refund", { header, claims: more });

interface Attack {
  readonly token: () => string | Promise<string>;
  readonly reason: string;
}

const forgeries: Record<string, Attack> = {
  "alg none": { token: () => forge({ alg: "none" }, valid()), reason: "algorithm" },
  "alg None, with a signature": { token: () => forge({ alg: "None" }, valid(), "x"), reason: "algorithm" },
  "no alg at all": { token: () => forge({ kid: "k1" }, valid(), "x"), reason: "algorithm" },
  "HMAC with the public key as PEM": { token: () => withHmac(rsa.pem), reason: "algorithm" },
  "HMAC with the public key as JWK": { token: () => withHmac(JSON.stringify(rsa.jwk)), reason: "algorithm" },
  "HMAC with an empty secret": { token: () => withHmac(""), reason: "algorithm" },
  "HMAC that says RS256": { token: () => withHmac(rsa.pem, "RS256"), reason: "signature" },
  "another algorithm than the key's": {
    token: () => altered(0, (h) => ({ ...h, alg: "ES384" })),
    reason: "unknown_key",
  },
  "an EC token under an RSA algorithm": {
    token: () => altered(0, (h) => ({ ...h, alg: "PS256" })),
    reason: "unknown_key",
  },
  "another key of the same name": { token: () => signedBy(mallory), reason: "signature" },
  "an unknown kid": { token: () => signedBy(mallory, { kid: "mallory" }), reason: "unknown_key" },
  "no kid": { token: () => signedBy(mallory, { kid: undefined }), reason: "signature" },
  "a path as kid": { token: () => signedBy(mallory, { kid: "../../../../dev/null" }), reason: "unknown_key" },
  "an address as kid": { token: () => signedBy(mallory, { kid: `${lure.url}/key` }), reason: "unknown_key" },
  "SQL as kid": { token: () => signedBy(mallory, { kid: "k1' UNION SELECT 'k" }), reason: "unknown_key" },
  "a prototype's name as kid": { token: () => signedBy(mallory, { kid: "__proto__" }), reason: "unknown_key" },
  "a kid that is an object": { token: () => altered(0, (h) => ({ ...h, kid: { k1: 1 } })), reason: "malformed" },
  "a key in the header (jwk)": { token: () => signedBy(mallory, { jwk: mallory.jwk }), reason: "signature" },
  "the address of a key set (jku)": {
    token: () => signedBy(mallory, { jku: `${lure.url}/jwks` }),
    reason: "signature",
  },
  "the address of a certificate (x5u)": {
    token: () => signedBy(mallory, { x5u: `${lure.url}/cert` }),
    reason: "signature",
  },
  "a certificate in the header (x5c)": { token: () => signedBy(mallory, { x5c: ["MIIB"] }), reason: "signature" },
  "an extension that must be understood (crit)": {
    token: () => altered(0, (h) => ({ ...h, crit: ["exp"], exp: 1 })),
    reason: "type",
  },
  "an unencoded payload (b64)": {
    token: () => altered(0, (h) => ({ ...h, crit: ["b64"], b64: false })),
    reason: "type",
  },
  "changed claims": { token: () => altered(1, (c) => ({ ...c, sub: "root" })), reason: "signature" },
  "a truncated signature": { token: async () => (await good()).slice(0, -8), reason: "signature" },
  "an empty signature": {
    token: async () => `${(await good()).split(".").slice(0, 2).join(".")}.`,
    reason: "signature",
  },
  "the signature of another token": {
    token: async () =>
      `${(await altered(1, (c) => c)).split(".").slice(0, 2).join(".")}.${(await signedBy(signer)).split(".")[2]}`,
    reason: "signature",
  },
  "an encrypted token": { token: () => "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..AAAA.BBBB.CCCC", reason: "malformed" },
  "two parts": { token: async () => (await good()).split(".").slice(0, 2).join("."), reason: "malformed" },
  "no JWT": { token: () => "opaque-token", reason: "malformed" },
  "claims that are a list": {
    token: () =>
      new CompactSign(Buffer.from("[]")).setProtectedHeader({ alg: "ES256", kid: "k1" }).sign(signer.privateKey),
    reason: "malformed",
  },
};

const wrongClaims: Record<string, Attack> = {
  "another issuer": { token: () => signedBy(signer, {}, { iss: "https://evil.example" }), reason: "issuer" },
  "an issuer that begins like ours": {
    token: () => signedBy(signer, {}, { iss: `${ISSUER}.evil.example` }),
    reason: "issuer",
  },
  "no issuer": { token: () => signedBy(signer, {}, { iss: undefined }), reason: "issuer" },
  "an issuer that is a list": { token: () => signedBy(signer, {}, { iss: [ISSUER] }), reason: "issuer" },
  "a token for another server": {
    token: () => signedBy(signer, {}, { aud: "https://stock.example/mcp" }),
    reason: "audience",
  },
  "a token for several other servers": {
    token: () => signedBy(signer, {}, { aud: ["https://stock.example/mcp", `${AUDIENCE}/admin`] }),
    reason: "audience",
  },
  "an audience that begins like ours": {
    token: () => signedBy(signer, {}, { aud: `${AUDIENCE}2` }),
    reason: "audience",
  },
  "an audience in a list in a list": { token: () => signedBy(signer, {}, { aud: [[AUDIENCE]] }), reason: "audience" },
  "no audience": { token: () => signedBy(signer, {}, { aud: undefined }), reason: "audience" },
  "an empty audience": { token: () => signedBy(signer, {}, { aud: [] }), reason: "audience" },
  "an expired token": { token: () => signedBy(signer, {}, { exp: now() - 60 }), reason: "expired" },
  "no expiry": { token: () => signedBy(signer, {}, { exp: undefined }), reason: "claims" },
  "an expiry that is text": { token: () => signedBy(signer, {}, { exp: "9999999999" }), reason: "claims" },
  "a token that is not valid yet": { token: () => signedBy(signer, {}, { nbf: now() + 600 }), reason: "not_yet_valid" },
  "a token from the future": { token: () => signedBy(signer, {}, { iat: now() + 600 }), reason: "not_yet_valid" },
  nobody: { token: () => signedBy(signer, {}, { sub: undefined }), reason: "claims" },
  "a subject that is no text": { token: () => signedBy(signer, {}, { sub: { admin: true } }), reason: "claims" },
  "a token that is bound to a key of its owner": {
    token: () => signedBy(signer, {}, { cnf: { jkt: "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" } }),
    reason: "bound",
  },
  "a token that is bound to a certificate": {
    token: () => signedBy(signer, {}, { cnf: { "x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2" } }),
    reason: "bound",
  },
  "a logout token": { token: () => signedBy(signer, { typ: "logout+jwt" }), reason: "type" },
  "a proof of possession": { token: () => signedBy(signer, { typ: "dpop+jwt" }), reason: "type" },
};

/** Requests that carry a good token in a way nobody may. */
const misplaced: Record<string, { raw: (make: typeof modern) => Promise<Raw & { path?: string }>; status: number }> = {
  "a token in the address": {
    raw: async (make) => ({ ...make("tools/call", { name: "work" }), path: `?access_token=${await good()}` }),
    status: 400,
  },
  "a token in the address beside one in the header": {
    raw: async (make) => ({
      ...make("tools/call", { name: "work" }, { headers: bearer(await good()) }),
      path: `?x=1&access_token=${await good()}`,
    }),
    status: 400,
  },
  "a token in the body": {
    raw: async (make) => make("tools/call", { name: "work", access_token: await good() }),
    status: 401,
  },
  "a token in a cookie": {
    raw: async (make) => make("tools/call", { name: "work" }, { headers: { cookie: `access_token=${await good()}` } }),
    status: 401,
  },
  "a token in _meta": {
    raw: async (make) => make("tools/call", { name: "work", _meta: { authorization: `Bearer ${await good()}` } }),
    status: 401,
  },
  "two tokens in one header": {
    raw: async (make) =>
      make(
        "tools/call",
        { name: "work" },
        { headers: { authorization: `Bearer ${await good()}, Bearer ${await good()}` } },
      ),
    status: 400,
  },
  "a token with a blank in it": {
    raw: async (make) =>
      make("tools/call", { name: "work" }, { headers: { authorization: `Bearer ${await good()} x` } }),
    status: 400,
  },
  "the scheme without a token": {
    raw: async (make) => make("tools/call", { name: "work" }, { headers: { authorization: "Bearer" } }),
    status: 400,
  },
  "Basic credentials": {
    raw: async (make) => make("tools/call", { name: "work" }, { headers: { authorization: "Basic cm9vdDpyb290" } }),
    status: 401,
  },
};

const ways = {
  listen: (raw: Raw, path = ""): Promise<Answer> => overSocket(`${url}${path}`, raw),
  fetch: async (raw: Raw, path = ""): Promise<Answer> => {
    if (path === "") return overFetch(server, raw);
    const init = { method: "POST", headers: { host: "127.0.0.1", ...raw.headers }, body: String(raw.body) };
    const response = await server.fetch(new Request(`http://127.0.0.1/mcp${path}`, init));
    return {
      status: response.status,
      text: await response.text(),
      messages: [],
      headers: Object.fromEntries(response.headers),
    };
  },
};
const eras = { modern, legacy: legacy as typeof modern };
const textOf = ({ messages }: Answer): string => (messages.at(-1) as Reply).result?.content?.[0]?.text ?? "";

describe.each(["listen", "fetch"] as const)("an attack over %s", (way) => {
  const send = ways[way];

  describe.each(["modern", "legacy"] as const)("on the %s era", (era) => {
    const make = eras[era];
    const work = (token: string): Promise<Answer> =>
      send(make("tools/call", { name: "work" }, { headers: bearer(token) }));

    it.each(Object.entries({ ...forgeries, ...wrongClaims }))("with %s is refused", async (_, { token, reason }) => {
      expect((await work(await good())).status).toBe(200);
      const given = await token();
      const answer = await work(given);
      expect(answer.status).toBe(401);
      expect(answer.headers["www-authenticate"]).toMatch(/^Bearer error="invalid_token", .*error_description="[^"]+"$/);
      expect(handled).toBe(1);
      expect(
        logged.filter(({ message }) => message.startsWith("request refused")).map((entry) => entry.reason),
      ).toEqual([reason]);
      const secret = given.split(".")[2] || given;
      expect(JSON.stringify([logged, answer])).not.toContain(secret);
      expect(lure.asked).toEqual([]);
    });
    it.each(Object.entries(misplaced))("with %s is refused", async (_, { raw, status }) => {
      const { path = "", ...request } = await raw(make);
      const answer = await send(request, path);
      expect(answer.status).toBe(status);
      const error = /error="(\w+)"/.exec(answer.headers["www-authenticate"] ?? "")?.[1];
      expect(error).toBe(status === 400 ? "invalid_request" : undefined);
      expect(handled).toBe(0);
    });
    it("with the scope of another tool is refused", async () => {
      const token = await sign(signer, "alice", "mcp orders:read refund orders:refunds");
      const { status } = await send(make("tools/call", { name: "refund" }, { headers: bearer(token) }));
      expect([status, handled]).toEqual([403, 0]);
    });
    it("with a very long address gets no very long header back", async () => {
      const uri = `file://${"a".repeat(100_000)}`;
      const headers = { ...bearer(await good()), "mcp-name": "file://x" }; // node takes 16 KiB of headers
      const answer = await send(make("resources/read", { uri }, { headers }));
      expect(answer.status).toBe(403);
      expect(answer.headers["www-authenticate"]?.length).toBeLessThan(1_000);
    });
    it("by a proxying handler finds no token to pass on", async () => {
      const token = await good();
      const answer = await send(make("tools/call", { name: "relay" }, { headers: bearer(token) }));
      expect(textOf(answer)).toContain('"subject":"alice"');
      expect(textOf(answer)).not.toContain(token.slice(-40));
      expect(textOf(answer).toLowerCase()).not.toContain("bearer");
    });
    it("by a page that was rebound to this server is refused whatever token it brings", async () => {
      const headers = bearer(await good());
      const foreigners: Record<string, string>[] = [{ host: "evil.example" }, { origin: "https://evil.example" }];
      for (const foreign of foreigners) {
        const { status } = await send(make("tools/call", { name: "work" }, { headers: { ...headers, ...foreign } }));
        expect(status).toBe(403);
      }
      expect(handled).toBe(0);
    });
    it("that waits for what another caller was answered finds nothing kept", async () => {
      const ask = async (subject: string, scope: string, method: string, params = {}): Promise<Answer> =>
        send(make(method, params, { headers: bearer(await sign(signer, subject, scope)) }));
      expect((await ask("root", "mcp orders:refund", "tools/list")).text).toContain('"refund"');
      expect((await ask("alice", "mcp", "tools/list")).text).not.toContain('"refund"');
      expect((await ask("root", "mcp orders:refund", "tools/list")).text).toContain('"refund"');
      expect(textOf(await ask("root", "mcp", "tools/call", { name: "mine" }))).toBe("only for root");
      expect(textOf(await ask("alice", "mcp", "tools/call", { name: "mine" }))).toBe("only for alice");
    });
  });

  it("on what is hidden hears nothing of it, not even that it changes", async () => {
    const listening = async (subject: string): Promise<string> => {
      const filter = { resourceSubscriptions: ["plans://merger", "plans://none"] };
      const headers = bearer(await sign(signer, subject, "mcp", { expiresIn: -29 })); // with the clocks' difference, a second
      const heard = send(modern("subscriptions/listen", { notifications: filter }, { headers }));
      const telling = setInterval(() => server.notify.resourceUpdated("plans://merger"), 50);
      return (await heard.finally(() => clearInterval(telling))).text;
    };
    expect(await listening("mallory")).not.toContain("merger");
    expect(await listening("root")).toContain('"notifications/resources/updated","params":{"uri":"plans://merger"');
    const session = async (subject: string): Promise<string> => {
      const token = await sign(signer, subject, "mcp", { expiresIn: -28 });
      const auth = bearer(token);
      const opened = initialize();
      const own = { ...sessionOf(await send({ ...opened, headers: { ...opened.headers, ...auth } })), ...auth };
      const asked = await send(legacy("resources/subscribe", { uri: "plans://merger" }, { headers: own }));
      expect((asked.messages.at(-1) as Reply).error).toBeUndefined();
      const heard = send({ method: "GET", headers: { accept: "text/event-stream", ...own } });
      const telling = setInterval(() => server.notify.resourceUpdated("plans://merger"), 50);
      return (await heard.finally(() => clearInterval(telling))).text;
    };
    expect(await session("mallory")).not.toContain("merger");
    expect(await session("root")).toContain("plans://merger");
  });
  it("with another caller's session id is refused", async () => {
    const as = async (subject: string, raw: Raw): Promise<Answer> =>
      send({ ...raw, headers: { ...raw.headers, ...bearer(await sign(signer, subject, "mcp")) } });
    const session = sessionOf(await as("alice", initialize()));
    for (const raw of [
      legacy("tools/list", {}, { headers: session }),
      legacy("tools/call", { name: "work" }, { headers: session }),
      { method: "GET", headers: { accept: "text/event-stream", ...session } },
      { method: "DELETE", headers: session },
    ]) {
      expect((await as("mallory", raw)).status).toBe(404);
      expect((await send(raw)).status).toBe(401);
    }
    expect((await as("alice", legacy("tools/list", {}, { headers: session }))).status).toBe(200);
    expect(handled).toBe(0);
  });
  it("with another caller's question is refused", async () => {
    const as = async (subject: string, params: object): Promise<Reply> => {
      const headers = bearer(await sign(signer, subject, "mcp"));
      const meta = { [META.capabilities]: { elicitation: { form: {} } } };
      return (await send(modern("tools/call", { name: "ask", ...params }, { headers, meta }))).messages.at(-1) as Reply;
    };
    const retry = answering(await as("alice", {}), { "Sure?": { action: "accept", content: { value: "yes" } } });
    expect((await as("mallory", retry)).error).toMatchObject({ code: -32602, data: { reason: "foreign" } });
    expect((await as("alice", retry)).result?.content?.[0]?.text).toBe("accept");
  });
  it("by the same subject of another issuer is another caller's", async () => {
    const other = await createSigner("o1");
    const both = createServer({
      name: "two",
      version: "1",
      logSink: () => undefined,
      auth: anyOf(
        jwt({ issuer: ISSUER, audience: AUDIENCE, publicKey: signer.jwk }),
        jwt({ issuer: "https://other.example", audience: AUDIENCE, publicKey: other.jwk }),
      ),
    });
    both.tool("ask", {}, async (_, ctx) => (await ctx.elicit("Sure?", ["yes", "no"])).action);
    const as = async (token: string, params: object): Promise<Reply> => {
      const meta = { [META.capabilities]: { elicitation: { form: {} } } };
      const raw = modern("tools/call", { name: "ask", ...params }, { headers: bearer(token), meta });
      return (await overFetch(both, raw)).messages.at(-1) as Reply;
    };
    const alice = await sign(signer, "alice");
    const retry = answering(await as(alice, {}), { "Sure?": { action: "accept", content: { value: "yes" } } });
    const namesake = await sign(other, "alice", "", { claims: { iss: "https://other.example" } });
    expect((await as(namesake, retry)).error?.data?.reason).toBe("foreign");
    // with its own keys, an issuer cannot speak for the other
    const forged = await sign(other, "alice");
    expect((await as(forged, retry)).error?.data?.reason).toBe("invalid_token");
    expect((await as(alice, retry)).result?.content?.[0]?.text).toBe("accept");
    await both.close();
  });
  it("with a token of 100 KB is refused, and the next request answered", async () => {
    const huge = await sign(signer, "alice", "mcp", { claims: { more: "x".repeat(75_000) } });
    const answer = await send(modern("tools/call", { name: "work" }, { headers: bearer(huge) }));
    // Node itself takes 16 KiB of headers
    expect(answer.status).toBe(way === "listen" ? 431 : 400);
    expect((await send(modern("tools/call", { name: "work" }, { headers: bearer(await good()) }))).status).toBe(200);
    expect(handled).toBe(1);
  });
});

describe("another spelling of the address", () => {
  it.each(["/./mcp", "/x/../mcp", "/mcp#x", "/mcp?x", "http://evil.example/mcp"])(
    "%s needs a token all the same",
    async (path) => {
      const { hostname, port } = new URL(url);
      const ask = async (headers: Record<string, string>): Promise<number> => {
        const raw = modern("tools/call", { name: "work" }, { headers });
        return (await overSocket({ hostname, port, path }, raw)).status;
      };
      const token = await good();
      expect(await ask({})).toBe(401);
      expect(await ask(bearer(await signedBy(mallory)))).toBe(401);
      expect(await ask({ authorization: `Bearer ${token}, Bearer ${token}` })).toBe(400);
      expect(handled).toBe(0);
      expect(await ask(bearer(token))).toBe(200);
    },
  );
});

describe("two Authorization headers", () => {
  it("are refused, where Node would take the first of them", async () => {
    const { request } = await import("node:http");
    const token = await good();
    const { body, headers } = modern("tools/call", { name: "work" });
    for (const second of [`Bearer ${await sign(mallory, "root", "mcp")}`, "Basic cm9vdDpyb290", `Bearer ${token}`]) {
      const status = await new Promise<number>((resolve, reject) => {
        const sent = request(url, { method: "POST" }, (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        });
        for (const [name, value] of Object.entries(headers ?? {})) sent.setHeader(name, value);
        sent.setHeader("authorization", [`Bearer ${token}`, second] as never); // its type knows one only
        sent.on("error", reject);
        sent.end(body);
      });
      expect(status).toBe(400);
    }
    expect(handled).toBe(0);
  });
});

describe("an attacker who floods a server", () => {
  it("with tokens of unknown keys makes it ask its issuer once, not once a token", async () => {
    const before = issuer.asked.length;
    for (let i = 0; i < 20; i++) {
      const token = await signedBy(mallory, { kid: `flood-${i}` });
      expect((await overSocket(url, modern("tools/list", {}, { headers: bearer(token) }))).status).toBe(401);
    }
    expect(issuer.asked.length - before).toBeLessThanOrEqual(1);
  });
});
