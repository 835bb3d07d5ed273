import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { modern, overFetch } from "../../test/raw-requests.ts";
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
} from "../../test/tokens.ts";
import { createServer, type TenonServer } from "../index.ts";
import { anyOf, introspection, jwt } from "./index.ts";

let signer: Signer;
let issuer: Issuer;
let server: TenonServer;
const OTHER = "https://other.example";
const inactive = { body: '{"active":false}' };

beforeAll(async () => {
  signer = await createSigner("k1");
  issuer = await openIssuer(() => inactive);
  server = createServer({
    name: "orders",
    version: "1",
    logSink: () => undefined,
    auth: anyOf(
      jwt(accepts(signer, { requiredScopes: ["mcp", "staff"] })),
      introspection({
        url: `${issuer.url}/introspect`,
        clientId: "a",
        clientSecret: "b",
        issuer: OTHER,
        audience: AUDIENCE,
        requiredScopes: ["mcp"],
        cacheTtlMs: 0,
      }),
    ),
  });
  server.tool("whoami", {}, (_, ctx) => `${ctx.caller?.subject} of ${ctx.caller?.issuer}`);
});
beforeEach(() => {
  issuer.answer = () => inactive;
});
afterAll(() => issuer.close());

const call = async (token: string | Promise<string>) =>
  overFetch(server, modern("tools/call", { name: "whoami" }, { headers: bearer(await token) }));
const opaque = (scope: string): void => {
  issuer.answer = () => ({ body: JSON.stringify({ active: true, sub: "bob", aud: AUDIENCE, scope }) });
};

describe("a server that takes tokens of several kinds", () => {
  it("takes what any of them takes", async () => {
    expect((await call(sign(signer, "alice", "mcp staff"))).text).toContain(`alice of ${ISSUER}`);
    opaque("mcp");
    expect((await call("opaque")).text).toContain(`bob of ${OTHER}`);
  });
  it("asks of a token the scopes of the one that took it", async () => {
    const { status, headers } = await call(sign(signer, "alice", "mcp"));
    expect(status).toBe(403);
    expect(headers["www-authenticate"]).toContain('scope="mcp staff"');
    opaque("mcp");
    expect((await call("opaque")).status).toBe(200);
  });
  it("says of a refused token what the one says that recognised most of it", async () => {
    const expired = await call(sign(signer, "alice", "mcp staff", { expiresIn: -600 }));
    expect(expired.status).toBe(401);
    expect(expired.headers["www-authenticate"]).toContain("The token has expired");
    expect((await call("opaque")).headers["www-authenticate"]).toContain("The token is not active");
  });
  it("names what every token needs, and all issuers", async () => {
    const { headers } = await overFetch(server, modern("tools/list"));
    expect(headers["www-authenticate"]).toContain('scope="mcp"');
    const path = "/.well-known/oauth-protected-resource/mcp";
    const said = await server.fetch(new Request(`http://127.0.0.1${path}`));
    expect(await said.json()).toMatchObject({
      authorization_servers: [ISSUER, OTHER],
      scopes_supported: ["mcp", "staff"],
    });
  });
  it("makes of an outage neither a yes nor a no, and lets in whom another knows", async () => {
    issuer.answer = () => ({ status: 500, body: "" });
    expect((await call("opaque")).status).toBe(503);
    expect((await call(sign(signer, "alice", "mcp staff", { claims: { iss: OTHER } }))).status).toBe(503);
    expect((await call(sign(signer, "alice", "mcp staff", { expiresIn: -600 }))).status).toBe(401);
    expect((await call(sign(signer, "alice", "mcp staff"))).status).toBe(200);
  });
  it("shows a token to its own issuer only, whoever stands first", async () => {
    const partner = introspection({
      url: `${issuer.url}/introspect`,
      clientId: "a",
      clientSecret: "b",
      issuer: OTHER,
      audience: AUDIENCE,
    });
    const auth = anyOf(partner, jwt(accepts(signer)));
    const first = createServer({ name: "orders", version: "1", logSink: () => undefined, auth });
    first.tool("whoami", {}, () => "you");
    const ask = async (token: string) => overFetch(first, modern("tools/list", {}, { headers: bearer(token) }));
    const before = issuer.asked.length;
    expect((await ask(await sign(signer, "alice"))).status).toBe(200);
    expect((await ask(await sign(signer, "alice", "", { expiresIn: -600 }))).status).toBe(401);
    expect(issuer.asked.length).toBe(before);
    for (const token of ["opaque", "a.b.c", await sign(signer, "alice", "", { claims: { iss: OTHER } })])
      await ask(token);
    expect(issuer.asked.length).toBe(before + 3);
    await first.close();
  });
  it("is refused without any", () => {
    expect(() => anyOf()).toThrow("needs token verifiers");
    expect(() => anyOf({} as never)).toThrow("needs token verifiers");
  });
});
