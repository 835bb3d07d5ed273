import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ask, said } from "../../test/ask.ts";
import { modern, overFetch } from "../../test/raw-requests.ts";
import { AUDIENCE, bearer, ISSUER, type Issuer, openIssuer } from "../../test/tokens.ts";
import { createServer, type LogEntry, type TenonServer } from "../index.ts";
import { type IntrospectionOptions, introspection } from "./index.ts";

const SECRET = "s3cret: with/odd+letters";
const logged: LogEntry[] = [];
let issuer: Issuer;
const now = (): number => Math.floor(Date.now() / 1000);
const active = (more: object = {}): { body: string } => ({
  body: JSON.stringify({
    active: true,
    sub: "alice",
    aud: AUDIENCE,
    client_id: "desk",
    scope: "a b",
    exp: now() + 600,
    ...more,
  }),
});

beforeAll(async () => {
  issuer = await openIssuer(() => active());
});
beforeEach(() => {
  issuer.asked.length = 0;
  issuer.answer = () => active();
  logged.length = 0;
});
afterAll(() => issuer.close());

const options = (more: Partial<IntrospectionOptions> = {}): IntrospectionOptions => ({
  url: `${issuer.url}/introspect`,
  clientId: "orders server",
  clientSecret: SECRET,
  issuer: ISSUER,
  audience: AUDIENCE,
  ...more,
});
function serve(more: Partial<IntrospectionOptions> = {}): TenonServer {
  const server = createServer({
    name: "orders",
    version: "1",
    logSink: (entry) => logged.push(entry),
    auth: introspection(options(more)),
  });
  return server.tool("whoami", {}, (_, ctx) => `${ctx.caller?.subject} ${ctx.caller?.scopes} ${ctx.caller?.issuer}`);
}
const call = (server: TenonServer, token: string) =>
  overFetch(server, modern("tools/call", { name: "whoami" }, { headers: bearer(token) }));

describe("a token that only its issuer can read", () => {
  it("is looked up there, with this server's own credentials", async () => {
    const server = serve();
    const answer = await call(server, "opaque-1");
    expect(answer.text).toContain(`alice a,b ${ISSUER}`);
    const [asked] = issuer.asked;
    expect(Object.fromEntries(new URLSearchParams(asked?.body))).toEqual({
      token: "opaque-1",
      token_type_hint: "access_token",
    });
    const [id, secret] = Buffer.from(asked?.headers.authorization?.slice(6) ?? "", "base64")
      .toString()
      .split(":");
    expect(new URLSearchParams(`v=${id}`).get("v")).toBe("orders server");
    expect(new URLSearchParams(`v=${secret}`).get("v")).toBe(SECRET);
  });
  it("is asked about once by everybody who waits, and then not for a while", async () => {
    const server = serve();
    issuer.answer = () => ({ ...active(), delayMs: 30 });
    const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await call(server, "t")).status));
    expect(new Set(statuses)).toEqual(new Set([200]));
    await call(server, "t");
    expect(issuer.asked).toHaveLength(1);
    await call(server, "another");
    expect(issuer.asked).toHaveLength(2);
  });
  it("ends when it is revoked, at the latest after cacheTtlMs", async () => {
    const server = serve({ cacheTtlMs: 1_000 });
    expect((await call(server, "t")).status).toBe(200);
    issuer.answer = () => ({ body: '{"active":false}' });
    await expect.poll(async () => (await call(server, "t")).status, { timeout: 5_000, interval: 100 }).toBe(401);
    issuer.answer = () => active();
    expect((await call(server, "t")).status).toBe(200); // a refusal is not kept
  });
  it("is asked about every time with cacheTtlMs 0", async () => {
    const server = serve({ cacheTtlMs: 0 });
    for (let i = 0; i < 3; i++) await call(server, "t");
    expect(issuer.asked).toHaveLength(3);
  });
  it.each([
    ["that is not active", '{"active":false}', "inactive"],
    ["for another server", { aud: "https://stock.example/mcp" }, "audience"],
    ["for no server", { aud: undefined }, "audience"],
    ["of another issuer", { iss: "https://evil.example" }, "issuer"],
    ["that has expired", { exp: 1 }, "expired"],
    ["that is not valid yet", { nbf: 9_999_999_999 }, "not_yet_valid"],
    ["of nobody", { sub: undefined }, "claims"],
  ])("%s is refused", async (_, answer, reason) => {
    issuer.answer = () => (typeof answer === "string" ? { body: answer } : active(answer));
    const { status } = await call(serve(), "t");
    expect(status).toBe(401);
    expect(logged.at(-1)?.reason).toBe(reason);
  });
  it("may be for several servers, and without an end as long as the issuer says that it is active", async () => {
    issuer.answer = () => active({ aud: ["x", AUDIENCE], exp: undefined, iss: ISSUER });
    expect((await call(serve(), "t")).status).toBe(200);
  });
  it("is neither good nor bad while its issuer cannot be asked: 503, and the secret is in no log", async () => {
    const answers: ReturnType<Issuer["answer"]>[] = [
      { status: 500, body: "" },
      { status: 401, body: '{"error":"invalid_client"}' },
      { body: "<html>" },
      { body: '{"active":"true"}' },
      { body: JSON.stringify({ active: true, more: "x".repeat(70_000) }) },
      { ...active(), delayMs: 1_000 },
    ];
    for (const answer of answers) {
      issuer.answer = () => answer;
      const { status, headers, text } = await call(serve({ timeoutMs: 200 }), "t");
      expect(status, String(answer.body).slice(0, 20)).toBe(503);
      expect(headers["retry-after"]).toBe("5");
      expect(headers).not.toHaveProperty("www-authenticate");
      expect(text).toContain("cannot be checked at the moment");
    }
    expect(logged).toHaveLength(answers.length);
    for (const hidden of [SECRET, encodeURIComponent(SECRET), issuer.asked[0]?.headers.authorization ?? "Basic"]) {
      expect(JSON.stringify(logged)).not.toContain(hidden);
    }
  });
  it("is not sent to where a redirect points", async () => {
    const elsewhere = await openIssuer(() => active());
    issuer.answer = () => ({ status: 307, body: "" });
    expect((await call(serve(), "t")).status).toBe(503);
    expect(elsewhere.asked).toEqual([]);
    await elsewhere.close();
  });
});

describe("a configuration", () => {
  it("that sends credentials in clear text, or has none, is refused", () => {
    for (const url of ["http://login.example/introspect", "ftp://login.example", "login.example"]) {
      expect(() => introspection(options({ url }))).toThrow(expect.objectContaining({ code: "introspection_url" }));
    }
    for (const more of [{ clientId: "" }, { clientSecret: "" }, { clientSecret: undefined as never }]) {
      expect(() => introspection(options(more))).toThrow(expect.objectContaining({ code: "introspection_client" }));
    }
    expect(() => introspection(options({ timeoutMs: 0 }))).toThrow(expect.objectContaining({ code: "timeout" }));
    expect(() => introspection(options({ secret: "x" } as never))).toThrow('has no option "secret"');
  });
});

describe("a server with a token check, in tests and inside another program", () => {
  it("takes the caller that was given with the request, and then looks at no token", async () => {
    const caller = { subject: "bob", scopes: ["x"], claims: {} };
    expect(said(await ask(serve(), "tools/call", { name: "whoami" }, { caller }))).toBe("bob x undefined");
    expect(issuer.asked).toEqual([]);
  });
});
