import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createSigningKey } from "@tenon/server/development";
import { decodeJwt, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TEST_CERT, TEST_KEY } from "../../client/test/stub/tls.ts";
import { authorize, authorizeUrl, Browser, type Page, pkce, signIn, tokenRequest } from "./browser.ts";
import { authServer, type RunningServer } from "./tenon.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-attacks-"));
const orders = "http://127.0.0.1:8030/mcp";
const stock = "http://127.0.0.1:8031/mcp";
const callback = "http://127.0.0.1:3000/callback";
const web = { client_id: "web", redirect_uri: callback };
/** Lets a process trust the certificate of the tests' TLS server. */
const trusting = { NODE_EXTRA_CA_CERTS: join(folder, "ca.pem") };
let server: RunningServer;
let issuer: string;

beforeAll(async () => {
  writeFileSync(trusting.NODE_EXTRA_CA_CERTS, TEST_CERT);
  const clients = ["--client", `web=${callback}`, "--client", `other=${callback}`, "--client", "nightly:s3cret"];
  const resources = ["--resource", orders, "--resource", stock];
  server = await authServer([...resources, "--scope", "orders:read orders:refund", ...clients], {
    cwd: folder,
    env: trusting,
  });
  issuer = server.issuer;
}, 60_000);
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The page at the end of an authorization request, without a person. */
const open = (more: Record<string, string | undefined>, browser = new Browser()): Promise<Page> =>
  browser.open(authorizeUrl(issuer, web, pkce().challenge, { resource: orders, ...more }));
/** What a client is told in its redirect. */
const told = ({ location = "http://no-redirect.invalid" }: Page): URLSearchParams => new URL(location).searchParams;
const exchange = (code: string, verifier: string, more: Record<string, string> = {}) =>
  tokenRequest(issuer, { grant_type: "authorization_code", code, code_verifier: verifier, ...web, ...more });
const refresh = (refreshToken = "", more: Record<string, string> = {}) =>
  tokenRequest(issuer, { grant_type: "refresh_token", refresh_token: refreshToken, client_id: "web", ...more });

describe("PKCE cannot be downgraded", () => {
  it.each<[string, Record<string, string | undefined>]>([
    ["without a challenge", { code_challenge: undefined, code_challenge_method: undefined }],
    ["with the plain method", { code_challenge_method: "plain" }],
    ["with a method left out, which means plain", { code_challenge_method: undefined }],
    ["with a method nobody knows", { code_challenge_method: "S512" }],
    ["with a challenge that is too short to be one", { code_challenge: "abc" }],
  ])("%s", async (_, more) => {
    const page = await open(more);
    expect(told(page).get("error")).toBe("invalid_request");
    expect(told(page).has("code")).toBe(false);
  });
  it("and a code is worth nothing without its verifier, or with another", async () => {
    const { verifier, challenge } = pkce();
    const url = authorizeUrl(issuer, web, challenge, { resource: orders });
    const code = (await authorize(new Browser(), url)).get("code") ?? "";
    const without = { grant_type: "authorization_code", code, ...web };
    expect((await tokenRequest(issuer, without)).body.error).toBe("invalid_grant");
    expect((await exchange(code, pkce().verifier)).body.error).toBe("invalid_grant");
    expect((await exchange(code, challenge)).body.error).toBe("invalid_grant");
    expect((await exchange(code, verifier)).status).toBe(200);
  });
  it.each(["token", "id_token", "code token", "none"])("nor avoided by the response type %s", async (response_type) => {
    const page = await open({ response_type, nonce: "n", scope: "openid" });
    expect(page.location).toMatch(/error=(unsupported_response_type|invalid_request)/);
  });
});

describe("a code", () => {
  it("is good for one exchange; a second one takes back what the first one gave", async () => {
    const { code, verifier, body } = await signIn(issuer, web, { resource: orders });
    expect((await exchange(code, verifier)).body.error).toBe("invalid_grant");
    expect((await refresh(body.refresh_token)).body.error).toBe("invalid_grant");
  });
  it("is good for the client that asked for it only, at the address it asked with", async () => {
    const attempts: Record<string, string>[] = [{ client_id: "other" }, { redirect_uri: `${callback}2` }];
    for (const stolen of attempts) {
      const { verifier, challenge } = pkce();
      const answer = await authorize(new Browser(), authorizeUrl(issuer, web, challenge, { resource: orders }));
      expect((await exchange(answer.get("code") ?? "", verifier, stolen)).body.error).toBe("invalid_grant");
    }
  });
  it("cannot be exchanged for another server than the one that was approved", async () => {
    const { verifier, challenge } = pkce();
    const answer = await authorize(new Browser(), authorizeUrl(issuer, web, challenge, { resource: orders }));
    const { body } = await exchange(answer.get("code") ?? "", verifier, { resource: stock });
    expect(body.error).toBe("invalid_target");
  });
});

describe("a refresh token", () => {
  it("is good once; using it again ends the whole family", async () => {
    const first = (await signIn(issuer, web, { resource: orders })).body;
    const second = (await refresh(first.refresh_token)).body;
    expect((await refresh(first.refresh_token)).body.error).toBe("invalid_grant");
    expect((await refresh(second.refresh_token)).body.error).toBe("invalid_grant");
    // another sign-in of the same person with the same program is another family
    const other = (await signIn(issuer, web, { resource: orders })).body;
    expect((await refresh(other.refresh_token)).status).toBe(200);
  });
  it("is used by one of two who come at once", async () => {
    const { body } = await signIn(issuer, web, { resource: orders });
    const answers = await Promise.all([refresh(body.refresh_token), refresh(body.refresh_token)]);
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
  });
  it("gives no more scopes, no other server, and nothing to another client", async () => {
    const asked = { resource: orders, scope: "orders:read" };
    for (const [more, error] of [
      [{ scope: "orders:read orders:refund" }, "invalid_scope"],
      [{ resource: stock }, "invalid_target"],
      [{ client_id: "other" }, "invalid_grant"],
    ] as const) {
      const { body } = await signIn(issuer, web, asked);
      expect((await refresh(body.refresh_token, more)).body.error).toBe(error);
    }
  });
  it("is gone after it was given back", async () => {
    const { body } = await signIn(issuer, web, { resource: orders });
    const given = new URLSearchParams({ token: body.refresh_token ?? "", client_id: "web" });
    expect((await fetch(`${issuer}/revoke`, { method: "POST", body: given })).status).toBe(200);
    expect((await refresh(body.refresh_token)).body.error).toBe("invalid_grant");
  });
});

describe("nobody is sent where the client did not register", () => {
  it.each([
    "http://evil.example/callback",
    "//evil.example",
    "http:\\\\evil.example",
    "/\\evil.example",
    "http://127.0.0.1:3000@evil.example/callback",
    "http://127.0.0.1.evil.example/callback",
    "http://127.0.0.1:3000/callback/../steal",
    "http://127.0.0.1:3000/callback%2f..%2fsteal",
    "http://127.0.0.1:3000/callback?next=http://evil.example",
    "http://127.0.0.1:3000/callback#fragment",
    "https://127.0.0.1:3000/callback",
    "http://localhost:3000/callback",
    "http://127.0.0.1:3000/Callback",
    "javascript:alert(1)",
    "data:text/html,x",
    "",
  ])("%j", async (redirect_uri) => {
    for (const more of [{}, { code_challenge: undefined }, { prompt: "none" }, { response_mode: "fragment" }]) {
      const page = await open({ redirect_uri, ...more });
      expect([page.status, page.location]).toEqual([400, undefined]);
      expect(page.text).not.toContain("<form");
    }
  });
  it("also when the address is left out, or given twice", async () => {
    expect((await open({ redirect_uri: undefined })).location).toBeUndefined();
    const twice = `${authorizeUrl(issuer, web, pkce().challenge)}&redirect_uri=http://evil.example`;
    const page = await new Browser().open(twice);
    expect([page.status, page.location]).toEqual([400, undefined]);
  });
  it("nor by anything that is added to the pages or their forms", async () => {
    const browser = new Browser();
    const page = await open({}, browser);
    const consent = await browser.submit(page, {
      user: "alice",
      redirect_uri: "http://evil.example",
      returnTo: "//evil",
    });
    expect(consent.url.startsWith(`${issuer}/interaction/`)).toBe(true);
    const elsewhere = { ...consent, url: `${consent.url}?redirect_uri=//evil.example&return_to=http://evil.example` };
    const done = await browser.submit(elsewhere, { decision: "deny", redirect_uri: "http://evil.example" });
    expect(done.location?.startsWith(`${callback}?error=access_denied`)).toBe(true);
  });
  it.each([
    "/interaction//evil.example",
    "//evil.example/interaction/x",
    "/interaction/..%2f..%2fevil",
    "/interaction/",
  ])("nor by the address %s", async (path) => {
    const page = await new Browser().open(`${issuer}${path}`);
    expect(page.status).toBeGreaterThanOrEqual(400);
    expect(page.location).toBeUndefined();
  });
});

describe("the pages", () => {
  const markup = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>\u202egnp.exe`;
  async function registered(more: Record<string, unknown>): Promise<string> {
    const response = await fetch(`${issuer}/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ redirect_uris: [callback], token_endpoint_auth_method: "none", ...more }),
    });
    const { client_id } = (await response.json()) as { client_id: string };
    return client_id;
  }

  it("take nothing that a client says about itself for markup", async () => {
    const client_id = await registered({ client_name: markup });
    const browser = new Browser();
    const login = await open({ client_id, login_hint: undefined }, browser);
    const consent = await browser.submit(login, { user: "alice" });
    for (const page of [login, consent]) {
      expect(page.text).toContain("&lt;script&gt;");
      expect(page.text).toContain("\\u{202e}");
      expect(page.text).not.toMatch(/<script|<img|\u202e/);
    }
  });
  it("take nothing in a request for markup, also where it ends in an error", async () => {
    for (const more of [
      { redirect_uri: `${callback}${markup}` },
      { client_id: markup },
      { scope: "openid", login_hint: markup },
      { state: markup, response_mode: "form_post", scope: "nonsense" },
      { resource: markup, redirect_uri: "http://evil.example" },
    ]) {
      const page = await open(more);
      expect(page.text).not.toMatch(/<script>alert|<img/);
    }
  });
  it("run no script, load nothing, and stand in no frame", async () => {
    const browser = new Browser();
    const login = await open({}, browser);
    for (const page of [login, await browser.submit(login, { user: "alice" }), await open({ client_id: "unknown" })]) {
      const policy = page.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).toMatch(/form-action 'self'/);
      expect(policy).not.toMatch(/unsafe|script-src|\*/);
      expect(page.headers.get("x-frame-options")).toBe("DENY");
      expect(page.headers.get("x-content-type-options")).toBe("nosniff");
      expect(page.text).not.toMatch(/<script|\son\w+=|javascript:/i);
    }
  });
  it("show the host of the redirect and the client's id, whatever the client calls itself", async () => {
    const client_id = await registered({ client_name: "Your Bank", redirect_uris: ["https://evil.example/cb"] });
    const page = await open({ client_id, redirect_uri: "https://evil.example/cb" });
    expect(page.text).toContain("<strong>evil.example</strong>");
    expect(page.text).toContain(client_id);
  });
  it("send their form's answer to nobody else, however the client writes its address", async () => {
    const uri = "https://a.example;script-src/cb";
    const client_id = await registered({ redirect_uris: [uri] });
    const page = await open({ client_id, redirect_uri: uri });
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toMatch(/; form-action 'self' https:$/);
  });
  it.each(["javascript:alert(1)", "data:text/html,x", "http://plain.example/cb", "https://ok.example/#x"])(
    "are not reached by a client with the address %s",
    async (uri) => expect(await registered({ redirect_uris: [uri] })).toBeUndefined(),
  );
});

describe("a form of the pages", () => {
  const approve = { decision: "approve", scope: ["orders:read"] };
  async function consentOf(browser: Browser): Promise<Page> {
    return browser.submit(await open({}, browser), { user: "alice" });
  }

  it("counts only with the token of its own page", async () => {
    const browser = new Browser();
    const consent = await consentOf(browser);
    for (const csrf of ["", "x".repeat(43), "é"]) {
      const forged = {
        ...consent,
        text: consent.text.replace(/name="csrf" value="[^"]+"/, `name="csrf" value="${csrf}"`),
      };
      expect((await browser.submit(forged, approve)).status).toBe(403);
    }
    // the token of the sign-in page is not one for the consent page, nor is that of another authorization
    const login = await open({}, new Browser());
    expect((await browser.submit({ ...login, url: consent.url }, approve)).status).toBe(403);
    expect((await browser.submit(consent, approve)).location).toContain("code=");
  });
  it.each<[string, Record<string, string>]>([
    ["another site", { origin: "https://evil.example", "sec-fetch-site": "cross-site" }],
    ["a page without an origin", { origin: "null" }],
    ["another port of this computer", { origin: "http://127.0.0.1:9", "sec-fetch-site": "same-site" }],
  ])("does not count when %s sent it", async (_, headers) => {
    const browser = new Browser();
    expect((await browser.submit(await consentOf(browser), approve, headers)).status).toBe(403);
  });
  it("does not count in another browser: not without its cookie, and not with the cookie of another sign-in", async () => {
    const victim = new Browser();
    const consent = await consentOf(victim);
    const thief = new Browser();
    expect((await thief.open(consent.url)).status).toBe(400);
    await consentOf(thief);
    expect((await thief.open(consent.url)).status).toBe(400);
    expect((await thief.submit(consent, approve)).status).toBe(400);
    // a browser keeps a cookie to its path; what if one did not
    const cookie = thief.cookieHeader(new URL((await open({}, thief)).url).pathname);
    expect(cookie).toContain("tenon_interaction=");
    expect((await fetch(consent.url, { headers: { cookie } })).status).toBe(400);
    // the victim's own page still works
    expect((await victim.submit(consent, approve)).location).toContain("code=");
  });
  it("does not count with a forged cookie, although its name is known", async () => {
    const victim = new Browser();
    const consent = await consentOf(victim);
    const uid = new URL(consent.url).pathname.split("/").pop();
    const forged = { cookie: `tenon_interaction=${uid}; tenon_interaction.sig=AAAAAAAAAAAAAAAAAAAAAAAAAAA` };
    expect((await fetch(consent.url, { headers: forged })).status).toBe(400);
  });
  it("counts once", async () => {
    const browser = new Browser();
    const consent = await consentOf(browser);
    expect((await browser.submit(consent, approve)).location).toContain("code=");
    const again = await browser.submit(consent, approve);
    expect([again.status, again.location]).toEqual([400, undefined]);
  });
  it("is refused when it is too large, or no form", async () => {
    const browser = new Browser();
    const consent = await consentOf(browser);
    expect((await browser.submit(consent, { decision: "x".repeat(20_000) })).status).toBe(413);
    const json = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    expect((await browser.open(consent.url, json)).status).toBe(415);
    expect((await browser.open(consent.url, { method: "PUT" })).status).toBe(405);
  });
  it("with nothing ticked approves nothing", async () => {
    const browser = new Browser();
    expect(told(await browser.submit(await consentOf(browser), { decision: "approve" })).get("error")).toBe(
      "access_denied",
    );
  });
});

describe("a token", () => {
  it.each(["https://evil.example/mcp", "http://127.0.0.1:8030/mcp/admin", "http://127.0.0.1:8030/", "orders", "*"])(
    "is not given for the unknown server %s",
    async (resource) => {
      expect(told(await open({ resource })).get("error")).toBe("invalid_target");
      const basic = { authorization: `Basic ${Buffer.from("nightly:s3cret").toString("base64")}` };
      const direct = await tokenRequest(issuer, { grant_type: "client_credentials", resource }, basic);
      expect(direct.body.error).toBe("invalid_target");
    },
  );
  it("is not given for no server, where there are several", async () => {
    expect(told(await open({ resource: undefined })).get("error")).toBe("invalid_target");
  });
  it("is not given with a scope that this server does not offer", async () => {
    expect(told(await open({ scope: "orders:read admin" })).get("error")).toBe("invalid_scope");
    const basic = { authorization: `Basic ${Buffer.from("nightly:s3cret").toString("base64")}` };
    const ask = { grant_type: "client_credentials", resource: orders, scope: "admin" };
    expect((await tokenRequest(issuer, ask, basic)).body.error).toBe("invalid_scope");
  });
  it("has one audience, also when several were approved", async () => {
    const { verifier, challenge } = pkce();
    const url = `${authorizeUrl(issuer, web, challenge, { resource: orders })}&resource=${encodeURIComponent(stock)}`;
    const answer = await authorize(new Browser(), url);
    const { body } = await exchange(answer.get("code") ?? "", verifier, { resource: stock });
    expect(decodeJwt(body.access_token ?? "").aud).toBe(stock);
  });
  it("is not given to a client that may not have one of its own", async () => {
    const { body } = await tokenRequest(issuer, {
      grant_type: "client_credentials",
      client_id: "web",
      resource: orders,
    });
    expect([body.error, body.access_token]).toEqual(["invalid_request", undefined]);
  });
  it("is not given for a proof that is unsigned, or signed by somebody else", async () => {
    const claims = { iss: "nightly", sub: "nightly", aud: issuer, jti: "1" };
    const foreign = await createSigningKey();
    const assertions = [
      new UnsecuredJWT(claims).setExpirationTime("1m").encode(),
      await new SignJWT(claims).setProtectedHeader({ alg: "ES256" }).setExpirationTime("1m").sign(foreign.privateKey),
      await new SignJWT(claims)
        .setProtectedHeader({ alg: "HS256" })
        .setExpirationTime("1m")
        .sign(new TextEncoder().encode("s3cret")),
    ];
    for (const client_assertion of assertions) {
      const { body } = await tokenRequest(issuer, {
        grant_type: "client_credentials",
        resource: orders,
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        client_assertion,
      });
      expect(body.error).toBe("invalid_client");
    }
  });
});

describe("the server's own requests and names", () => {
  it("are not sent into this network for an https document", async () => {
    let asked = 0;
    const inside = createTlsServer({ key: TEST_KEY, cert: TEST_CERT }, (_, response) => {
      asked += 1;
      response.end("{}");
    });
    await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve));
    const { port } = inside.address() as { port: number };
    try {
      const url = `https://localhost:${port}/client.json`;
      expect((await open({ client_id: url })).status).toBe(400);
      expect((await open({ client_id: `https://127.0.0.1:${port}/client.json` })).status).toBe(400);
      expect(asked).toBe(0);
      // the same certificate is good enough for a program that does not look where it goes
      const program = `fetch(${JSON.stringify(url)}).then(() => process.exit(0), () => process.exit(1))`;
      await promisify(execFile)(process.execPath, ["-e", program], { env: { ...process.env, ...trusting } });
      expect(asked).toBe(1);
    } finally {
      inside.close();
    }
  });
  it("are not sent anywhere else for what is no document's address", async () => {
    let asked = 0;
    const inside = createServer((_, response) => {
      asked += 1;
      response.end("{}");
    });
    await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve));
    const { port } = inside.address() as { port: number };
    try {
      for (const client_id of [
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/client.json",
        "http://127.0.0.1.nip.io/client.json",
        `http://user@127.0.0.1:${port}/client.json`,
        `http://127.0.0.1:${port}/`,
        `http://127.0.0.1:${port}/a?b=c`,
        `http://127.0.0.1:${port}/a/%2e%2E/b`,
        `ftp://127.0.0.1:${port}/client.json`,
        `file:///etc/passwd`,
      ]) {
        const page = await open({ client_id });
        expect([page.status, page.location], client_id).toEqual([400, undefined]);
      }
      expect(asked).toBe(0);
      await open({ client_id: `http://127.0.0.1:${port}/client.json` });
      expect(asked).toBe(1);
    } finally {
      inside.close();
    }
  });
  it("are not answered under another name, as after DNS rebinding", async () => {
    const { port } = new URL(issuer);
    for (const path of ["/.well-known/oauth-authorization-server", "/interaction/x", "/register"]) {
      const status = await new Promise((resolve, reject) => {
        const headers = { host: `evil.example:${port}` };
        request({ host: "127.0.0.1", port, path, headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on("error", reject)
          .end();
      });
      expect(status).toBe(421);
    }
  });
  it("can be read by a page of the client's own origin only, where they hold tokens", async () => {
    const { verifier, challenge } = pkce();
    const url = authorizeUrl(issuer, web, challenge, { resource: orders });
    const code = (await authorize(new Browser(), url)).get("code") ?? "";
    const ask = { grant_type: "authorization_code", code, code_verifier: verifier, ...web };
    const from = (origin: string) =>
      fetch(`${issuer}/token`, { method: "POST", body: new URLSearchParams(ask), headers: { origin } });
    const evil = await from("https://evil.example");
    expect([evil.status, evil.headers.get("access-control-allow-origin")]).toEqual([400, null]);
    const own = await from("http://127.0.0.1:3000");
    expect(own.headers.get("access-control-allow-origin")).toBe("http://127.0.0.1:3000");
  });
  it("end nothing when they are nonsense", async () => {
    for (const [path, init] of [
      ["/token", { method: "POST", body: "x".repeat(100_000) }],
      ["/register", { method: "POST", body: "{", headers: { "content-type": "application/json" } }],
      ["/register", { method: "POST", body: "[1]", headers: { "content-type": "application/json" } }],
      ["/authorize?client_id=%00&redirect_uri=%ff", {}],
      ["/authorize/x", {}],
    ] as const) {
      const { status } = await fetch(`${issuer}${path}`, init);
      expect(status, path).toBeGreaterThanOrEqual(400);
      expect(status, path).toBeLessThan(501);
    }
    expect((await fetch(`${issuer}/jwks`)).status).toBe(200);
  });
  it("leave no secret in what the server prints", () => {
    expect(server.output.stderr).not.toMatch(/s3cret|eyJ|PRIVATE/);
    expect(server.output.stderr).toContain("refused");
  });
});
