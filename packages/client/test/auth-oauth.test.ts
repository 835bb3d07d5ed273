import { describe, expect, it } from "vitest";
import { memoryTokenStore, oauth } from "../src/auth/index.ts";
import { knownIdentity } from "../src/auth/registration.ts";
import { bearers, codeOf, type Scene, scene } from "./oauth-scene.ts";
import { closeAfterEach, connect, start, stubHttp } from "./stub/index.ts";
import { type Issuer, type IssuerBehavior, protectedBy, startIssuer } from "./stub/issuer.ts";

closeAfterEach();

describe.each(["modern", "legacy"] as const)("signing in to a %s server", (era) => {
  it("opens a page, comes back to this machine and is let in", async () => {
    const on = await scene({ era });
    expect(await on.client.listTools()).toHaveLength(1);
    await on.client.callTool("s", "t");
    const [asked, ...others] = on.issuer.authorizations;
    expect(others).toEqual([]);
    expect(asked).toMatchObject({
      response_type: "code",
      code_challenge_method: "S256",
      resource: on.server.url,
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(on.issuer.registrations).toMatchObject([
      {
        application_type: "native",
        redirect_uris: [asked?.redirect_uri],
        token_endpoint_auth_method: "none",
        grant_types: ["authorization_code", "refresh_token"],
      },
    ]);
    // scopes that it named here could be all that it is ever given
    expect(on.issuer.registrations[0]).not.toHaveProperty("scope");
    expect(on.issuer.tokenRequests).toMatchObject([{ grant_type: "authorization_code", resource: on.server.url }]);
    const [token] = on.issuer.tokens.keys();
    expect(bearers(on)).toEqual([undefined, `Bearer ${token}`]);
    expect(on.client.servers()).toMatchObject([{ health: "up", era }]);
  });
});

describe("the page that a browser comes back to", () => {
  it("repeats nothing, answers once, and is gone afterwards", async () => {
    const pages: { status: number; html: string; headers: Headers }[] = [];
    let back: URL | undefined;
    const on: Scene = await scene({
      oauth: {
        onAuthorize: async ({ url }) => {
          back = await on.issuer.browse(url);
          const visit = async (address: URL | string, init: RequestInit = {}) => {
            const answer = await fetch(address, init);
            pages.push({ status: answer.status, html: await answer.text(), headers: answer.headers });
          };
          await visit(new URL("/favicon.ico", back));
          await visit(back, { method: "POST" });
          void visit(`${back.href}&x=%3Cscript%3Ealert(1)%3C/script%3E`);
          return undefined;
        },
      },
    });
    await on.client.listTools();
    await expect.poll(() => pages.length).toBe(3);
    expect(pages.map(({ status }) => status)).toEqual([404, 405, 200]);
    const [, , page] = pages;
    expect(page?.html).toContain("You can close this window");
    expect(page?.html).not.toMatch(/script|code-/);
    expect(page?.headers.get("content-security-policy")).toContain("default-src 'none'");
    await expect(fetch(back ?? "")).rejects.toThrow();
  });

  it("may be another program's: what it was asked for is handed back", async () => {
    const redirectUrl = "https://console.example/callback";
    const on: Scene = await scene({ oauth: { redirectUrl, onAuthorize: ({ url }) => on.issuer.browse(url) } });
    await on.client.listTools();
    expect(on.issuer.authorizations).toMatchObject([{ redirect_uri: redirectUrl }]);
    expect(on.issuer.registrations).toMatchObject([{ application_type: "web" }]);
  });
});

describe("a sign-in that is not what it seems", () => {
  it.each<[string, string, IssuerBehavior]>([
    ["another issuer", "issuer_mismatch", { redirect: (params) => ({ ...params, iss: "https://evil.example" }) }],
    [
      "the same issuer with a slash",
      "issuer_mismatch",
      { redirect: (params) => ({ ...params, iss: `${params.iss}/` }) },
    ],
    ["no issuer although it was announced", "issuer_mismatch", { redirect: ({ iss: _, ...params }) => params }],
    [
      "a refusal",
      "authorization_denied",
      { redirect: ({ code: _, ...params }) => ({ ...params, error: "access_denied" }) },
    ],
    [
      "an error",
      "authorization_failed",
      { redirect: ({ code: _, ...params }) => ({ ...params, error: "temporarily_unavailable" }) },
    ],
    [
      "an error from another issuer, which is not even read",
      "issuer_mismatch",
      { redirect: ({ code: _, ...params }) => ({ ...params, iss: "https://evil.example", error: "access_denied" }) },
    ],
  ])("%s is refused, and no code is redeemed", async (_, code, issuer) => {
    const on = await scene({ issuer });
    const error: unknown = await on.client.listTools().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: "AuthError", code, server: "s", maybeExecuted: false });
    expect(on.issuer.tokenRequests).toEqual([]);
    expect(on.client.servers()).toMatchObject([{ health: "down", error: { code } }]);
    expect(String(error)).not.toContain("code-");
  });

  it.each<[string, IssuerBehavior["redirect"]]>([
    ["another state", (params) => ({ ...params, state: "another" })],
    ["no state", ({ state: _, ...params }) => params],
  ])("with %s is waited past, and refused where a program hands it over", async (_, redirect) => {
    const on = await scene({ issuer: { redirect }, oauth: { timeoutMs: 500 } });
    await expect(on.client.listTools()).rejects.toMatchObject({
      code: "authorization_timeout",
      message: expect.stringContaining("Answers to another sign-in than the one that was begun came (1)"),
    });
    const redirectUrl = "https://console.example/callback";
    const by: Scene = await scene({
      issuer: { redirect },
      oauth: { redirectUrl, onAuthorize: ({ url }) => by.issuer.browse(url) },
    });
    expect(await codeOf(by.client.listTools())).toBe("state_mismatch");
    expect([...on.issuer.tokenRequests, ...by.issuer.tokenRequests]).toEqual([]);
  });

  it("is not ended by a page on this machine that answers before the person does", async () => {
    const pages: (number | string)[] = [];
    const on: Scene = await scene({
      oauth: {
        onAuthorize: async ({ url, redirectUrl }) => {
          for (let i = 0; i < 150; i++) {
            const guess = new URLSearchParams({ code: "theirs", state: `guess-${i}`, iss: on.issuer.url });
            const query = i % 2 === 0 ? guess : new URLSearchParams({ error: "access_denied" });
            pages.push(
              await fetch(`${redirectUrl}?${query}`).then(
                ({ status }) => status,
                () => "cut",
              ),
            );
          }
          void on.issuer.browse(url).then((back) => fetch(back));
          return undefined;
        },
      },
    });
    expect(await on.client.listTools()).toHaveLength(1);
    expect(pages.slice(0, 100)).toEqual(Array(100).fill(400));
    expect(pages.slice(100)).toEqual(Array(50).fill("cut"));
    expect(on.issuer.tokenRequests).toHaveLength(1);
  });

  it("is not begun without PKCE, whether it is absent or another method", async () => {
    for (const methods of [undefined, ["plain"]]) {
      const metadata: IssuerBehavior["metadata"] = (all) => ({ ...all, code_challenge_methods_supported: methods });
      const on = await scene({ issuer: { metadata } });
      expect(await codeOf(on.client.listTools())).toBe("pkce_unsupported");
      expect([on.shown, on.issuer.registrations]).toEqual([[], []]);
    }
  });

  it.each([
    ["unencrypted", "http://login.example/authorize"],
    ["a script", "javascript:alert(1)"],
    ["another program's scheme", "file:///etc/passwd"],
    ["with a password", "https://me:secret@login.example/authorize"],
    ["in a private network", "https://10.0.0.1/authorize"],
    ["where clouds keep credentials", "https://169.254.169.254/authorize"],
  ])("is not shown when its page is %s", async (_, authorization_endpoint) => {
    const on = await scene({ issuer: { metadata: (all) => ({ ...all, authorization_endpoint }) } });
    // an address that is none by the SDK's own rules does not come so far
    expect(["unsafe_url", "discovery_failed"]).toContain(await codeOf(on.client.listTools()));
    expect(on.shown).toEqual([]);
  });

  it("names metadata of another issuer", async () => {
    for (const issuer of ["https://evil.example", "slash"]) {
      const metadata: IssuerBehavior["metadata"] = (all) => ({
        ...all,
        issuer: issuer === "slash" ? `${all.issuer}/` : issuer,
      });
      const on = await scene({ issuer: { metadata } });
      expect(await codeOf(on.client.listTools())).toBe("issuer_mismatch");
      expect(on.shown).toEqual([]);
    }
  });

  it("is for another resource", async () => {
    const on = await scene({ server: { resource: (all) => ({ ...all, resource: "https://other.example/mcp" }) } });
    expect(await codeOf(on.client.listTools())).toBe("resource_mismatch");
    expect(on.issuer.paths).toEqual([]);
  });
});

describe("nobody who could sign in", () => {
  it("is said so, with what to do", async () => {
    const on = await scene({ oauth: { onAuthorize: false } });
    await expect(on.client.listTools()).rejects.toMatchObject({
      code: "auth_required",
      message: expect.stringMatching(/onAuthorize.*fileTokenStore.*clientCredentials/),
    });
  });

  it("is said so where no browser can open, too", async () => {
    const screens = ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"];
    const before = screens.map((name) => [name, process.env[name]] as const);
    for (const name of screens) delete process.env[name];
    try {
      const issuer = await start(startIssuer());
      const server = await start(stubHttp({ onHttp: protectedBy(() => issuer) }));
      const client = connect({ s: { ...server.config, auth: oauth(), required: true } });
      if (process.platform === "linux") expect(await codeOf(client.listTools())).toBe("auth_required");
    } finally {
      for (const [name, value] of before) if (value !== undefined) process.env[name] = value;
    }
  });

  it("is not waited for longer than timeoutMs", async () => {
    const on = await scene({ oauth: { onAuthorize: () => undefined, timeoutMs: 100 } });
    expect(await codeOf(on.client.listTools())).toBe("authorization_timeout");
  });

  it("is not waited for when the client is closed", async () => {
    const on = await scene({ oauth: { onAuthorize: () => undefined } });
    const listing = codeOf(on.client.listTools());
    await expect.poll(() => on.issuer.registrations.length).toBe(1);
    await on.client.close();
    expect(["closed", "unreachable"]).toContain(await listing);
  });

  it("is told when the page cannot be shown", async () => {
    const onAuthorize = () => Promise.reject(new Error("the window is closed"));
    const on = await scene({ oauth: { onAuthorize } });
    const error: unknown = await on.client.listTools().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "authorization_failed",
      message: expect.stringContaining("the window is closed"),
    });
  });
});

describe("who the client is", () => {
  it("is what was configured, before a document or a registration", async () => {
    const client = { clientId: "known", clientSecret: "s3cret" };
    const metadata: IssuerBehavior["metadata"] = (all) => ({ ...all, client_id_metadata_document_supported: true });
    const clientMetadataUrl = "https://app.example/client.json";
    const on = await scene({ issuer: { metadata }, oauth: { client, clientMetadataUrl } });
    await on.client.listTools();
    expect(on.issuer.authorizations).toMatchObject([{ client_id: "known" }]);
    expect(on.issuer.registrations).toEqual([]);
    const basic = `Basic ${Buffer.from("known:s3cret").toString("base64")}`;
    expect(on.issuer.tokenRequests).toMatchObject([{ authorization: basic }]);
  });

  it("is its metadata document where the issuer takes such, and a registration otherwise", async () => {
    const clientMetadataUrl = "https://app.example/client.json";
    const metadata: IssuerBehavior["metadata"] = (all) => ({ ...all, client_id_metadata_document_supported: true });
    const on = await scene({ issuer: { metadata }, oauth: { clientMetadataUrl } });
    await on.client.listTools();
    expect(on.issuer.authorizations).toMatchObject([{ client_id: clientMetadataUrl }]);
    expect(on.issuer.registrations).toEqual([]);
    const other = await scene({ oauth: { clientMetadataUrl } });
    await other.client.listTools();
    expect(other.issuer.authorizations).toMatchObject([{ client_id: "client-1" }]);
  });

  it("may be a document on this machine, but only for an issuer on this machine", async () => {
    const clientMetadataUrl = "http://127.0.0.1:3000/client.json";
    const metadata: IssuerBehavior["metadata"] = (all) => ({ ...all, client_id_metadata_document_supported: true });
    const on = await scene({ issuer: { metadata }, oauth: { clientMetadataUrl } });
    await on.client.listTools();
    expect(on.issuer.authorizations).toMatchObject([{ client_id: clientMetadataUrl }]);
    const abroad = {
      issuer: "https://id.example",
      authorization_endpoint: "https://id.example/authorize",
      token_endpoint: "https://id.example/token",
      response_types_supported: ["code"],
      client_id_metadata_document_supported: true,
    };
    const guard = { fetch, check: (url: URL | string) => new URL(url) };
    const about = { server: "s", issuer: abroad.issuer, metadata: abroad, guard, store: memoryTokenStore() };
    const who = { client: undefined, clientMetadataUrl, clientName: "Tenon" };
    expect(await knownIdentity({ ...about, ...who })).toBeUndefined();
    for (const wrong of ["http://app.example/client.json", "http://127.0.0.1/", "ftp://127.0.0.1/c", "client.json"]) {
      expect(() => oauth({ clientMetadataUrl: wrong })).toThrow("https address with a path");
    }
  });

  it("is registered anew when the issuer seems to have forgotten it", async () => {
    let forgotten = false;
    const on: Scene = await scene({
      oauth: {
        timeoutMs: 1_000,
        // the person is left on a page that says "unknown client"
        onAuthorize: ({ url }) => (forgotten && url.includes("client-1&") ? undefined : on.issuer.browse(url)),
      },
    });
    await on.client.listTools();
    on.issuer.expireAll();
    on.issuer.refreshTokens.clear();
    forgotten = true;
    expect(await codeOf(on.client.callTool("s", "t"))).toBe("authorization_timeout");
    await on.client.callTool("s", "t");
    expect(on.issuer.registrations).toHaveLength(2);
  });

  it("is said to be missing where nothing is left", async () => {
    const on = await scene({ issuer: { metadata: ({ registration_endpoint: _, ...all }) => all } });
    await expect(on.client.listTools()).rejects.toMatchObject({
      code: "registration_failed",
      message: expect.stringContaining("client: { clientId }"),
    });
  });

  it("keeps its secret when the server suddenly names another authorization server", async () => {
    const issuers: Issuer[] = [await start(startIssuer()), await start(startIssuer())];
    let now = 0;
    const current = () => issuers[now] as Issuer; // there are two
    const server = await start(stubHttp({ onHttp: protectedBy(current) }));
    const onAuthorize = ({ url }: { url: string }) => current().browse(url);
    const secretive = oauth({ client: { clientId: "known", clientSecret: "s3cret" }, onAuthorize });
    const registering = oauth({ onAuthorize });
    const one = connect({ s: { ...server.config, auth: secretive, required: true } });
    const two = connect({ s: { ...server.config, auth: registering, required: true } });
    await Promise.all([one.listTools(), two.listTools()]);
    now = 1;
    await expect(one.callTool("s", "t")).rejects.toMatchObject({
      code: "issuer_mismatch",
      message: expect.stringContaining("configure `issuer`"),
    });
    expect(current().tokenRequests).toEqual([]);
    // a client that registers itself does so again, and takes nothing along
    await two.callTool("s", "t");
    expect(current().registrations).toHaveLength(1);
    expect(current().tokenRequests).toMatchObject([{ grant_type: "authorization_code" }]);
  });

  it("goes to no other authorization server than the configured one", async () => {
    const on = await scene({ oauth: { issuer: "https://id.example" } });
    expect(await codeOf(on.client.listTools())).toBe("issuer_mismatch");
    expect(on.issuer.paths).toEqual([]);
  });
});

describe("a token that ends", () => {
  it("is renewed once for twenty calls at the same time", async () => {
    const on = await scene({ issuer: { tokenMs: 50 } });
    await on.client.listTools();
    on.issuer.expireAll();
    await Promise.all(Array.from({ length: 20 }, (_, n) => on.client.callTool("s", "t", { n })));
    const kinds = on.issuer.tokenRequests.map(({ grant_type }) => grant_type);
    expect(kinds).toEqual(["authorization_code", "refresh_token"]);
    expect(on.issuer.tokenRequests[1]).toMatchObject({ resource: on.server.url });
    expect(on.issuer.reused).toEqual([]);
    expect(on.shown).toHaveLength(1);
  });

  it("is renewed before it ends, without a refused request", async () => {
    const on = await scene({ issuer: { lifetime: 2 } });
    await on.client.listTools();
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const before = on.server.hits.length;
    await on.client.callTool("s", "t");
    expect(on.issuer.tokenRequests.at(-1)).toMatchObject({ grant_type: "refresh_token" });
    const since = on.server.hits.slice(before);
    expect(
      since.every(({ path, headers }) => path === "/mcp" && on.issuer.tokens.has(`${headers.authorization}`.slice(7))),
    ).toBe(true);
    expect(on.shown).toHaveLength(1);
  });

  it("has its new refresh token kept before it is used", async () => {
    const order: string[] = [];
    const token: IssuerBehavior["token"] = (all) => {
      order.push(`gave ${all.refresh_token}`);
      return all;
    };
    const memory = memoryTokenStore();
    const store = {
      ...memory,
      set: (key: string, value: unknown) => {
        if (key.startsWith("tokens")) order.push(`kept ${(value as { refreshToken: string }).refreshToken}`);
        return memory.set(key, value);
      },
    };
    const on = await scene({
      oauth: { store },
      issuer: { token },
    });
    await on.client.listTools();
    for (let n = 0; n < 3; n++) {
      on.issuer.expireAll();
      await on.client.callTool("s", "t");
    }
    expect(order).toHaveLength(8);
    for (let n = 0; n < order.length; n += 2) expect(order[n + 1]).toBe(order[n]?.replace("gave", "kept"));
    expect(on.issuer.reused).toEqual([]);
  });

  it("leads to another sign-in when its refresh token was used up elsewhere", async () => {
    const on = await scene();
    await on.client.listTools();
    on.issuer.expireAll();
    const used = new URLSearchParams({
      grant_type: "refresh_token",
      refresh_token: [...on.issuer.refreshTokens.keys()].at(-1) ?? "",
    });
    await fetch(`${on.issuer.url}/token`, { method: "POST", body: used });
    on.issuer.expireAll();
    await on.client.callTool("s", "t");
    expect(on.issuer.reused).toHaveLength(1);
    expect(on.shown).toHaveLength(2);
  });

  it("does not ask anybody while the authorization server is only down", async () => {
    let down = false;
    const onToken = () => (down ? { status: 503, body: { error: "temporarily_unavailable" } } : undefined);
    const on = await scene({ issuer: { onToken } });
    await on.client.listTools();
    on.issuer.expireAll();
    down = true;
    await expect(on.client.callTool("s", "t")).rejects.toMatchObject({ code: "token_request_failed", retryable: true });
    down = false;
    await on.client.callTool("s", "t");
    expect(on.shown).toHaveLength(1);
  });

  it("is not renewed for ever: a new one that is refused too is invalid_token", async () => {
    const on = await scene({ issuer: { token: (all) => ({ ...all, access_token: "at-nobody" }) } });
    expect(await codeOf(on.client.listTools())).toBe("invalid_token");
    expect(on.issuer.tokenRequests).toHaveLength(1);
  });
});
