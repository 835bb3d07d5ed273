import { describe, expect, it } from "vitest";
import { bearer, clientCredentials, oauth } from "../src/auth/index.ts";
import { closeAfterEach, connect, start, stubHttp } from "./stub/index.ts";
import { type IssuerBehavior, type Protection, protectedBy, startIssuer } from "./stub/issuer.ts";

// What a server, or the authorization server it names, may try against whoever signs in there.

closeAfterEach();

async function scene(given: { issuer?: IssuerBehavior; server?: Protection } = {}) {
  const issuer = await start(startIssuer(given.issuer));
  const server = await start(stubHttp({ onHttp: protectedBy(() => issuer, given.server) }));
  const shown: string[] = [];
  const auth = oauth({
    onAuthorize: ({ url }) => {
      shown.push(url);
      return issuer.browse(url);
    },
  });
  const client = connect({ s: { ...server.config, auth, connectTimeoutMs: 20_000, required: true } });
  return { issuer, client, shown };
}
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "no error",
    (error: { code?: string }) => error.code,
  );

describe("a server that", () => {
  it("gets a secret that it shares with others to no authorization server but the first", async () => {
    const [good, evil] = [await start(startIssuer()), await start(startIssuer())];
    const one = await start(stubHttp({ onHttp: protectedBy(() => good) }));
    const two = await start(stubHttp({ onHttp: protectedBy(() => evil) }));
    const auth = clientCredentials({ clientId: "nightly", clientSecret: "s3cret" });
    const client = connect({ one: { ...one.config, auth }, two: { ...two.config, auth } });
    await client.callTool("one", "t");
    await expect(client.callTool("two", "t")).rejects.toMatchObject({ code: "issuer_mismatch" });
    expect(evil.tokenRequests).toEqual([]);
    // also where both are asked at the same time
    const again = clientCredentials({ clientId: "nightly", clientSecret: "s3cret" });
    const both = connect({ one: { ...one.config, auth: again }, two: { ...two.config, auth: again } });
    const before = good.tokenRequests.length;
    const calls = await Promise.allSettled([both.callTool("one", "t"), both.callTool("two", "t")]);
    expect(calls.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(good.tokenRequests.length - before + evil.tokenRequests.length).toBe(1);
  });

  it("names another authorization server, where nobody signs in, has the refresh token of the first not sent there", async () => {
    const [good, evil] = [await start(startIssuer({ lifetime: 2 })), await start(startIssuer())];
    let now = good;
    const server = await start(stubHttp({ onHttp: protectedBy(() => now) }));
    const onAuthorize = ({ url, issuer }: { url: string; issuer: string }) => {
      if (issuer !== good.url) throw new Error("the person looked at the address, and left");
      return good.browse(url);
    };
    const client = connect({
      s: { ...server.config, auth: oauth({ client: { clientId: "public" }, onAuthorize }), required: true },
    });
    await client.listTools();
    now = evil;
    expect(await codeOf(client.callTool("s", "t"))).toBe("authorization_failed");
    await new Promise((resolve) => setTimeout(resolve, 1_100)); // half the token's life: it is due
    expect(await codeOf(client.callTool("s", "t"))).toBe("authorization_failed");
    expect(evil.tokenRequests).toEqual([]);
    expect(good.tokenRequests.map(({ grant_type }) => grant_type)).toEqual(["authorization_code", "refresh_token"]);
  });

  it("is one of several on its host gets no token for the whole host", async () => {
    const resource = (all: object) => ({
      ...all,
      resource: new URL("/", String((all as { resource: string }).resource)).href,
    });
    const { client, shown } = await scene({ server: { resource } });
    expect(await codeOf(client.callTool("s", "t"))).toBe("resource_mismatch");
    expect(shown).toEqual([]);
  });

  it("wants other scopes with each request does not have a program's token widened without end", async () => {
    let wanted = 0;
    const needs = (method: string) => (method === "tools/call" ? `scope-${wanted++}` : undefined);
    const issuer = await start(startIssuer());
    const server = await start(stubHttp({ onHttp: protectedBy(() => issuer, { needs }) }));
    const auth = clientCredentials({ clientId: "nightly", clientSecret: "s3cret", scopes: ["read"] });
    const client = connect({ s: { ...server.config, auth, required: true } });
    for (let i = 0; i < 10; i++) expect(await codeOf(client.callTool("s", "t"))).toBe("insufficient_scope");
    await expect(client.callTool("s", "t")).rejects.toThrow(/has wanted more 10 times within 10 minutes/);
    expect(issuer.tokenRequests).toHaveLength(11);
    expect(await client.listTools()).toHaveLength(1); // it is still good for what it was good for
  });

  it("wants a hundred scopes at once gets a token for none of them", async () => {
    const many = Array.from({ length: 100 }, (_, n) => `scope-${n}`).join(" ");
    const needs = (method: string) => (method === "tools/call" ? many : undefined);
    const issuer = await start(startIssuer());
    const server = await start(stubHttp({ onHttp: protectedBy(() => issuer, { needs }) }));
    const auth = clientCredentials({ clientId: "nightly", clientSecret: "s3cret", scopes: ["read"] });
    const client = connect({ s: { ...server.config, auth, required: true } });
    await expect(client.callTool("s", "t")).rejects.toThrow("wants more than 64 scopes of one token");
    expect(issuer.tokenRequests).toHaveLength(1);
  });

  it("wants other scopes with each request does not have a person asked without end", async () => {
    let wanted = 0;
    const needs = (method: string) => (method === "tools/call" ? `scope-${wanted++}` : undefined);
    const on = await scene({ server: { needs } });
    await on.client.listTools();
    const codes: (string | undefined)[] = [];
    for (let i = 0; i < 10; i++) codes.push(await codeOf(on.client.callTool("s", "t")));
    expect(codes.at(0)).toBe("insufficient_scope");
    expect(codes.at(-1)).toBe("auth_required");
    expect(on.shown).toHaveLength(10);
  });

  it("refuses a token is quoted with its reason: short, without control characters and without the token", async () => {
    const said = `expired\u00a0\u0085 at noon, for at-secret ${"x".repeat(4_000)}`;
    const challenge = `error="invalid_token", error_description="${said}"`;
    const issuer = await start(startIssuer());
    issuer.tokens.get = () => undefined;
    const server = await start(stubHttp({ onHttp: protectedBy(() => issuer, { challenge }) }));
    for (const auth of [bearer("at-secret"), bearer(() => "at-secret")]) {
      const error = await connect({ s: { ...server.config, auth } })
        .callTool("s", "t")
        .catch((thrown: Error) => thrown);
      expect(error).toMatchObject({ name: "AuthError", code: "invalid_token" });
      expect(String(error)).toMatch(/it says "expired.* at noon, for …/);
      expect(String(error)).not.toMatch(/at-secret|\u0085/);
      expect(String(error).length).toBeLessThan(600);
    }
  });

  it("repeats words of a request in its reason cannot have other scopes asked for with them", async () => {
    const issuer = await start(startIssuer());
    const description = 'error_description="Resource file:///x?scope=admin needs more"';
    const server = await start(
      stubHttp({
        onHttp: protectedBy(() => issuer, {
          needs: (method) => (method === "tools/call" ? `write", ${description}, x="` : undefined),
        }),
      }),
    );
    const before = stubHttp({
      onHttp: (req, res, body) => {
        if (!body.includes("tools/call")) return protectedBy(() => issuer)(req, res, body);
        res
          .writeHead(403, { "www-authenticate": `Bearer ${description}, error="insufficient_scope", scope="write"` })
          .end();
        return true;
      },
    });
    for (const stub of [server, await start(before)]) {
      const auth = clientCredentials({ clientId: "nightly", clientSecret: "s3cret" });
      await connect({ s: { ...stub.config, auth } })
        .callTool("s", "t")
        .catch(() => undefined);
    }
    expect(issuer.tokenRequests.some(({ scope }) => scope?.includes("write"))).toBe(true);
    expect(JSON.stringify(issuer.tokenRequests)).not.toContain("admin");
  });

  it("wants scopes of thousands of characters has few of them repeated", async () => {
    const needs = (method: string) => (method === "tools/call" ? `ignore-all-before-${"x".repeat(4_000)}` : undefined);
    const issuer = await start(startIssuer({ grants: () => "read" }));
    issuer.tokens.set("fixed", "");
    const server = await start(stubHttp({ onHttp: protectedBy(() => issuer, { needs }) }));
    for (const auth of [bearer("fixed"), clientCredentials({ clientId: "nightly", clientSecret: "s3cret" })]) {
      const error: unknown = await connect({ s: { ...server.config, auth } })
        .callTool("s", "t")
        .catch((thrown) => thrown);
      expect(error).toMatchObject({ name: "AuthError" });
      expect(String(error).length).toBeLessThan(1_000);
    }
  });

  it.each(["http://169.254.169.254/x", "https://10.0.0.1/x", "file:///etc/passwd"])(
    "names %s as its metadata does not have it asked",
    async (address) => {
      const on = await scene({ server: { challenge: `resource_metadata="${address}"` } });
      expect(await codeOf(on.client.listTools())).toBe("unsafe_url");
      expect(on.issuer.paths).toEqual([]);
    },
  );
});

describe("an authorization server whose", () => {
  it.each([
    ["sign-in is a script", { authorization_endpoint: "javascript:alert(1)//" }, "discovery_failed"],
    ["sign-in is a file", { authorization_endpoint: "file:///etc/passwd" }, "unsafe_url"],
    ["token endpoint is in the cloud's own network", { token_endpoint: "https://169.254.169.254/t" }, "unsafe_url"],
    ["registration is in a private network", { registration_endpoint: "https://10.0.0.1/r" }, "unsafe_url"],
  ])("%s shows nothing to anybody and gets nothing", async (_, endpoints, code) => {
    const on = await scene({ issuer: { metadata: (metadata) => ({ ...metadata, ...endpoints }) } });
    expect(await codeOf(on.client.listTools())).toBe(code);
    expect([on.shown, on.issuer.tokenRequests]).toEqual([[], []]);
  });
  it("sign-in has parameters of its own cannot replace those of this client", async () => {
    const evil = "client_id=evil&redirect_uri=https%3A%2F%2Fevil.example&state=x&resource=https%3A%2F%2Fbank.example";
    const metadata: IssuerBehavior["metadata"] = (given) => ({
      ...given,
      authorization_endpoint: `${String(given.authorization_endpoint)}?${evil}`,
    });
    const on = await scene({ issuer: { metadata } });
    await on.client.listTools();
    expect(on.shown).toHaveLength(1);
    expect(on.shown.join()).not.toMatch(/evil|bank|state=x/);
  });
  it("token endpoint leads elsewhere takes no secret along", async () => {
    const elsewhere = await start(startIssuer());
    const onHttp: IssuerBehavior["onHttp"] = (req, res) => {
      if (req.url !== "/token") return undefined;
      req.resume();
      res.writeHead(307, { location: `${elsewhere.url}/token` }).end();
      return true;
    };
    const issuer = await start(startIssuer({ onHttp }));
    const server = await start(stubHttp({ onHttp: protectedBy(() => issuer) }));
    const auth = clientCredentials({ clientId: "nightly", clientSecret: "s3cret" });
    const client = connect({ s: { ...server.config, auth } });
    expect(await codeOf(client.callTool("s", "t"))).toBe("token_request_failed");
    expect(elsewhere.paths).toEqual([]);
  });
});
