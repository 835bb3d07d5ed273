import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSigningKey, publicJwks } from "@tenon/server/development";
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { authorize, authorizeUrl, Browser, pkce, signIn, tokenRequest } from "./browser.ts";
import { authServer, type RunningServer, tenon } from "./tenon.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-auth-server-"));
const orders = "http://127.0.0.1:8030/mcp";
const stock = "http://127.0.0.1:8031/mcp";
const web = { client_id: "web", redirect_uri: "http://127.0.0.1:3000/callback" };
const nightlyKey = await createSigningKey();
let server: RunningServer;
let issuer: string;

beforeAll(async () => {
  const file = join(folder, "clients.json");
  const nightly = {
    client_id: "nightly-jwt",
    grant_types: ["client_credentials"],
    response_types: [],
    redirect_uris: [],
    token_endpoint_auth_method: "private_key_jwt",
    jwks: publicJwks(nightlyKey),
  };
  writeFileSync(file, JSON.stringify([nightly]));
  const clients = ["--client", `web=${web.redirect_uri}`, "--client", "nightly:s3cret-of-nightly", "--client", file];
  const scopes = ["--scope", "orders:read orders:refund"];
  server = await authServer(["--resource", orders, "--resource", stock, ...scopes, ...clients], { cwd: folder });
  issuer = server.issuer;
}, 60_000);
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const verify = (token = "", audience = orders) =>
  jwtVerify(token, createRemoteJWKSet(new URL(`${issuer}/jwks`)), { issuer, audience, typ: "at+jwt" });

describe("signing in", () => {
  it("gives a token for the server that was asked for, which its key set verifies", async () => {
    const { status, body } = await signIn(issuer, web, { resource: orders, scope: "orders:read orders:refund" });
    expect(status).toBe(200);
    const { payload } = await verify(body.access_token);
    expect(payload).toMatchObject({ sub: "alice", client_id: "web", aud: orders, scope: "orders:read orders:refund" });
    await expect(verify(body.access_token, stock)).rejects.toThrow('"aud"');
  });
  it("answers the client with its state and the issuer", async () => {
    const url = authorizeUrl(issuer, web, pkce().challenge, { resource: orders });
    const answer = await authorize(new Browser(), url);
    expect(answer.get("state")).toBe("s-1");
    expect(answer.get("iss")).toBe(issuer);
  });
  it("gives no more scopes than were asked for, and no more than a person left ticked", async () => {
    const asked = await signIn(issuer, web, { resource: orders, scope: "orders:read" });
    expect(decodeJwt(asked.body.access_token ?? "").scope).toBe("orders:read");
    const both = { resource: orders, scope: "orders:read orders:refund" };
    const ticked = await signIn(issuer, web, both, { scope: ["orders:read"] });
    expect(ticked.body.scope).toBe("orders:read");
    expect(decodeJwt(ticked.body.access_token ?? "").scope).toBe("orders:read");
    // a scope that was never asked for cannot be slipped into the form
    const slipped = await signIn(issuer, web, asked.body.scope ? { resource: orders, scope: "orders:read" } : {}, {
      scope: ["orders:read", "orders:refund"],
    });
    expect(slipped.body.scope).toBe("orders:read");
  });
  it("gives all that there is to a client that names no scope", async () => {
    const { body } = await signIn(issuer, web, { resource: stock });
    expect(body.scope).toBe("orders:read orders:refund");
  });
  it("asks again at the next authorization, but not for the name", async () => {
    const browser = new Browser();
    await authorize(browser, authorizeUrl(issuer, web, pkce().challenge, { resource: orders }));
    const page = await browser.open(authorizeUrl(issuer, web, pkce().challenge, { resource: orders }));
    expect(page.text).toContain("Allow access?");
    expect(page.text).toContain("Signed in as <strong>alice</strong>");
  });
  it("shows who asks, where it leads, for which server and for what", async () => {
    const browser = new Browser();
    const page = await browser.open(authorizeUrl(issuer, web, pkce().challenge, { resource: orders }));
    const consent = await browser.submit(page, { user: "alice" });
    for (const shown of [
      "<code>web</code>",
      "<strong>127.0.0.1:3000</strong>",
      orders,
      "orders:read",
      "orders:refund",
    ]) {
      expect(consent.text).toContain(shown);
    }
  });
  it("can be refused", async () => {
    const browser = new Browser();
    const page = await browser.open(authorizeUrl(issuer, web, pkce().challenge, { resource: orders }));
    const { location = "" } = await browser.submit(page, { decision: "deny" });
    expect(new URL(location).searchParams.get("error")).toBe("access_denied");
    expect(location.startsWith(`${web.redirect_uri}?`)).toBe(true);
  });
  it("gives refresh tokens that lead to a new token for the same server", async () => {
    const { body } = await signIn(issuer, web, { resource: orders, scope: "orders:read" });
    const fresh = await tokenRequest(issuer, {
      grant_type: "refresh_token",
      refresh_token: body.refresh_token ?? "",
      client_id: "web",
    });
    expect(fresh.status).toBe(200);
    expect(fresh.body.refresh_token).not.toBe(body.refresh_token);
    expect((await verify(fresh.body.access_token)).payload.scope).toBe("orders:read");
  });
});

describe("a client", () => {
  it("finds everything at both well-known addresses", async () => {
    const [oauth, openid] = await Promise.all(
      ["oauth-authorization-server", "openid-configuration"].map(async (name) => {
        const response = await fetch(`${issuer}/.well-known/${name}`);
        return (await response.json()) as Record<string, unknown>;
      }),
    );
    expect(openid).toEqual(oauth);
    expect(oauth).toMatchObject({
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      registration_endpoint: `${issuer}/register`,
      jwks_uri: `${issuer}/jwks`,
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
      scopes_supported: ["openid", "offline_access", "orders:read", "orders:refund"],
    });
    expect(oauth?.grant_types_supported).toEqual(
      expect.arrayContaining(["authorization_code", "refresh_token", "client_credentials"]),
    );
  });
  it("may describe itself by a document on this computer", async () => {
    const documents = createServer((request, response) => {
      const { port } = documents.address() as AddressInfo;
      const client_id = `http://127.0.0.1:${port}${request.url}`;
      if (request.url === "/moved.json") return response.writeHead(302, { location: "/client.json" }).end();
      response.end(
        JSON.stringify({
          client_id: request.url === "/other.json" ? `${client_id}x` : client_id,
          client_name: "Editor",
          redirect_uris: ["http://127.0.0.1/callback"],
          ...(request.url === "/secret.json" && { client_secret: "public secret" }),
          ...(request.url === "/large.json" && { padding: "x".repeat(6_000) }),
        }),
      );
    });
    await new Promise<void>((resolve) => documents.listen(0, "127.0.0.1", resolve));
    const base = `http://127.0.0.1:${(documents.address() as AddressInfo).port}`;
    const client = { client_id: `${base}/client.json`, redirect_uri: "http://127.0.0.1:51234/callback" };
    try {
      const url = authorizeUrl(issuer, client, pkce().challenge, { resource: orders });
      const page = await new Browser().open(url);
      expect(page.text).toContain("described by a document at <strong>127.0.0.1");
      const { body } = await signIn(issuer, client, { resource: orders });
      expect((await verify(body.access_token)).payload.client_id).toBe(client.client_id);
      for (const name of [
        "other.json",
        "moved.json",
        "secret.json",
        "large.json",
        "",
        "a/../client.json",
        "%2e/x.json",
      ]) {
        const bad = authorizeUrl(issuer, { ...client, client_id: `${base}/${name}` }, pkce().challenge);
        const refused = await new Browser().open(bad);
        expect([refused.status, refused.location], name).toEqual([400, undefined]);
      }
      expect(server.output.stderr).toContain("its client_id is not its own address");
    } finally {
      documents.close();
    }
  });
  it("may register itself, and use any port of this computer", async () => {
    const registered = await fetch(`${issuer}/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        client_name: "Notebook",
        redirect_uris: ["http://127.0.0.1/callback"],
        grant_types: ["authorization_code", "refresh_token"],
        token_endpoint_auth_method: "none",
        scope: "orders:read",
      }),
    });
    expect(registered.status).toBe(201);
    const { client_id } = (await registered.json()) as { client_id: string };
    const client = { client_id, redirect_uri: "http://127.0.0.1:50999/callback" };
    const page = await new Browser().open(authorizeUrl(issuer, client, pkce().challenge, { resource: orders }));
    expect(page.text).toContain("nobody checked its name");
    const { body } = await signIn(issuer, client, { resource: orders });
    expect(body.scope).toBe("orders:read");
    expect(body.refresh_token).toBeTruthy();
  });
  it("without a person proves itself with a secret", async () => {
    const basic = (secret: string) => ({
      authorization: `Basic ${Buffer.from(`nightly:${secret}`).toString("base64")}`,
    });
    const ask = { grant_type: "client_credentials", resource: orders, scope: "orders:read" };
    const { status, body } = await tokenRequest(issuer, ask, basic("s3cret-of-nightly"));
    expect(status).toBe(200);
    expect((await verify(body.access_token)).payload).toMatchObject({ sub: "nightly", scope: "orders:read" });
    const wrong = await tokenRequest(issuer, ask, basic("guessed"));
    expect([wrong.status, wrong.body.error]).toEqual([401, "invalid_client"]);
  });
  it("without a person proves itself with a key of its own, once per proof", async () => {
    const proof = (audience = issuer) =>
      new SignJWT({ iss: "nightly-jwt", sub: "nightly-jwt", aud: audience, jti: crypto.randomUUID() })
        .setProtectedHeader({ alg: "ES256", kid: nightlyKey.kid })
        .setIssuedAt()
        .setExpirationTime("1m")
        .sign(nightlyKey.privateKey);
    const ask = (assertion: string) =>
      tokenRequest(issuer, {
        grant_type: "client_credentials",
        resource: stock,
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        client_assertion: assertion,
      });
    const assertion = await proof();
    const { body } = await ask(assertion);
    expect((await verify(body.access_token, stock)).payload.sub).toBe("nightly-jwt");
    expect((await ask(assertion)).body.error).toBe("invalid_client");
    expect((await ask(await proof("https://elsewhere.example"))).body.error).toBe("invalid_client");
  });
});

describe("the server", () => {
  it("signs with the key of tenon token, so that one set of settings accepts both", async () => {
    const args = ["token", "--subject", "bob", "--audience", orders, "--issuer", issuer];
    const { stdout } = await tenon(args, { cwd: folder });
    expect((await verify(stdout.trim())).payload.sub).toBe("bob");
    const { body } = await signIn(issuer, web, { resource: orders });
    expect(decodeProtectedHeader(body.access_token ?? "")).toEqual(decodeProtectedHeader(stdout.trim()));
  });
  it("says what it is on stderr, and nothing but JSON on stdout", () => {
    expect(server.output.stderr).toContain(`issuer     ${issuer}`);
    expect(server.output.stderr).toContain(`keys       ${issuer}/jwks`);
    expect(server.output.stderr).toContain(orders);
    expect(server.output.stderr).not.toMatch(/WARNING|oidc-provider|Unsupported/);
    expect(server.output.stdout.trim().split("\n")).toHaveLength(1);
  });
  it.each(["RS256", "EdDSA"])("works with a key for %s, and ends in time at Ctrl-C", async (alg) => {
    const cwd = mkdtempSync(join(folder, "alg-"));
    await tenon(["keys", "new", "--alg", alg], { cwd });
    const one = await authServer(["--resource", orders, "--client", `web=${web.redirect_uri}`], { cwd });
    const { body } = await signIn(one.issuer, web, { scope: "openid mcp" });
    const keys = createRemoteJWKSet(new URL(`${one.issuer}/jwks`));
    const { payload, protectedHeader } = await jwtVerify(body.access_token ?? "", keys, { audience: orders });
    expect([protectedHeader.alg, payload.scope]).toEqual([alg, "mcp"]);
    expect((await jwtVerify(body.id_token ?? "", keys, { audience: "web" })).payload.sub).toBe("alice");
    // a connection that is kept open must not keep the process
    await fetch(`${one.issuer}/jwks`);
    const began = Date.now();
    expect(await one.stop("SIGINT")).toBe(0);
    expect(Date.now() - began).toBeLessThan(4_000); // node would keep the connection for five
  });
  it("can sign in and approve by itself, which it warns of", async () => {
    const cwd = mkdtempSync(join(folder, "auto-"));
    const args = [
      "--auto-approve",
      "ci",
      "--expires",
      "60",
      "--no-registration",
      "--client",
      `web=${web.redirect_uri}`,
    ];
    const one = await authServer(args, { cwd });
    try {
      expect(one.output.stderr).toContain("WARNING: everything is approved as ci");
      expect(existsSync(join(cwd, ".tenon", "signing-key.pem"))).toBe(true);
      const { verifier, challenge } = pkce();
      const { location = "" } = await new Browser().open(authorizeUrl(one.issuer, web, challenge));
      const code = new URL(location).searchParams.get("code") ?? "";
      const ask = { grant_type: "authorization_code", code, code_verifier: verifier, ...web };
      const { body } = await tokenRequest(one.issuer, ask);
      const { sub, aud, iat = 0, exp = 0 } = decodeJwt(body.access_token ?? "");
      expect([sub, aud, exp - iat]).toEqual(["ci", "http://127.0.0.1:8000/mcp", 60]);
      expect((await fetch(`${one.issuer}/register`, { method: "POST" })).status).toBe(404);
    } finally {
      await one.stop();
    }
  });
  it("works on a Node 20 that has no URL.parse", async () => {
    const cwd = mkdtempSync(join(folder, "node-"));
    const env = { NODE_OPTIONS: "--import=data:text/javascript,delete%20URL.parse" };
    const one = await authServer(["--client", `web=${web.redirect_uri}`], { cwd, env });
    try {
      expect((await signIn(one.issuer, web)).status).toBe(200);
    } finally {
      await one.stop();
    }
  });
  it("lets in only the users it was given", async () => {
    const cwd = mkdtempSync(join(folder, "users-"));
    const one = await authServer(["--user", "alice", "--user", "bob", "--client", `web=${web.redirect_uri}`], { cwd });
    try {
      const browser = new Browser();
      const page = await browser.open(authorizeUrl(one.issuer, web, pkce().challenge));
      expect(page.text).toContain('<button name="user" value="bob">');
      expect(page.text).not.toContain("<input name");
      const again = await browser.submit(page, { user: "mallory" });
      expect([again.status, again.text.includes("Nobody of that name")]).toEqual([400, true]);
      expect((await browser.submit(again, { user: "bob" })).text).toContain("Signed in as <strong>bob</strong>");
    } finally {
      await one.stop();
    }
  });
});

describe("settings that are wrong", () => {
  it.each([
    ["a port in use", () => ["--port", new URL(issuer).port], 1, "is in use"],
    ["every address without an issuer", () => ["--host", "0.0.0.0", "--port", "0"], 2, "name it: --issuer"],
    ["a resource that is no address", () => ["--resource", "orders"], 2, "http or https address"],
    ["an issuer with a path", () => ["--issuer", "https://a.example/x"], 2, "without a path"],
    ["a client nobody understands", () => ["--client", "huh"], 2, "id=redirect-uri"],
    ["a client with a script as its address", () => ["--client", "a=javascript:alert(1)"], 2, "javascript URI scheme"],
    ["a client file that is missing", () => ["--client", "none.json"], 2, "cannot be read"],
    ["the same client twice", () => ["--client", "a:one", "--client", "a:two"], 2, "given twice"],
    ["an automatic user who may not sign in", () => ["--user", "a", "--auto-approve", "b"], 2, "add --user b"],
  ])("are refused in three lines: %s", async (_, args, code, message) => {
    const outcome = await tenon(["auth-server", "--port", "0", ...args()], { cwd: folder });
    expect([outcome.code, outcome.stdout]).toEqual([code, ""]);
    expect(outcome.stderr).toContain(message);
    expect(outcome.stderr).toMatch(/^tenon auth-server: .+\n {2}why: .+\n {2}do: {2}.+\n$/);
  });
  it("never repeat a secret", async () => {
    const outcome = await tenon(["auth-server", "--client", "a b:hunter2-secret"], { cwd: folder });
    expect(outcome.code).toBe(2);
    expect(outcome.stderr).not.toContain("hunter2");
  });
});
