import { AsyncLocalStorage } from "node:async_hooks";
import { spawn } from "node:child_process";
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { program } from "../../../test/programs.ts";
import {
  bearer,
  clientCredentials,
  enterpriseManaged,
  fileTokenStore,
  oauth,
  workloadIdentity,
} from "../src/auth/index.ts";
import { renderText } from "../src/index.ts";
import { cache } from "../src/interceptors/index.ts";
import { closeAfterEach, connect, start, stubHttp } from "./stub/index.ts";
import { type IssuerBehavior, type Protection, protectedBy, startIssuer } from "./stub/issuer.ts";

closeAfterEach();
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});
function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "tenon-auth-"));
  folders.push(made);
  return made;
}

async function scene(given: { issuer?: IssuerBehavior; server?: Protection } = {}) {
  const issuer = await start(startIssuer(given.issuer));
  const server = await start(stubHttp({ onHttp: protectedBy(() => issuer, given.server) }));
  const onAuthorize = ({ url }: { url: string }) => issuer.browse(url);
  return { issuer, server, onAuthorize };
}
const caught = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail("nothing was thrown"),
    (error: unknown) => error,
  );

describe("a bearer token", () => {
  it("goes with every request, and a function is asked for it each time", async () => {
    const { issuer, server } = await scene();
    issuer.tokens.set("fixed", "");
    const fixed = connect({ s: { ...server.config, auth: bearer("fixed"), required: true } });
    expect(await fixed.listTools()).toHaveLength(1);
    let now = "fixed";
    const asked: string[] = [];
    const principal = () => "me";
    const auth = bearer(
      async () => {
        asked.push(now);
        return now;
      },
      { principal },
    );
    const client = connect({ s: { ...server.config, auth, required: true } });
    await client.listTools();
    issuer.tokens.set("second", "");
    now = "second";
    await client.callTool("s", "t");
    expect(server.hits.at(-1)?.headers.authorization).toBe("Bearer second");
    expect(new Set(asked)).toEqual(new Set(["fixed", "second"]));
  });

  it("that is refused is asked for once more", async () => {
    const { issuer, server } = await scene();
    issuer.tokens.set("good", "");
    const given = ["old", "old", "good"];
    const auth = bearer(() => (given.length > 1 ? given.shift() : given[0]) ?? "", { principal: () => "me" });
    const client = connect({ s: { ...server.config, auth, required: true } });
    expect(await client.listTools()).toHaveLength(1);
    issuer.expireAll();
    const before = server.hits.length;
    expect(await caught(client.callTool("s", "t"))).toMatchObject({
      name: "AuthError",
      code: "invalid_token",
      server: "s",
    });
    expect(server.hits.length - before).toBe(1);
  });

  it("that lacks scopes names them", async () => {
    const { issuer, server } = await scene({
      server: { needs: (method) => (method === "tools/call" ? "write" : undefined) },
    });
    issuer.tokens.set("fixed", "read");
    const client = connect({ s: { ...server.config, auth: bearer("fixed") } });
    const error = await caught(client.callTool("s", "t"));
    expect(error).toMatchObject({ code: "insufficient_scope", data: { scopes: ["write"] } });
    expect(String(error)).toContain("write");
    expect(JSON.stringify(error)).not.toContain("fixed");
  });

  it("that cannot be had, or is none, is said so without being repeated", async () => {
    const { server } = await scene();
    const broken = () => Promise.reject(new Error("the vault is sealed"));
    for (const [get, words] of [
      [broken, "the vault is sealed"],
      [() => "se cret\n", "other characters"],
      [() => "", "an empty one"],
    ] as const) {
      const client = connect({ s: { ...server.config, auth: bearer(get) } });
      const error = await caught(client.callTool("s", "t"));
      expect(error).toMatchObject({ code: "token_unavailable", message: expect.stringContaining(words) });
      expect(String(error)).not.toContain("se cret");
    }
    expect(server.hits).toHaveLength(0);
  });

  it("is refused as an option where it would be sent unencrypted, twice, or is none", () => {
    const auth = bearer("secret");
    const wrong = (config: object) => () => connect({ s: config as { url: string } }); // that it is wrong is what is tested
    expect(wrong({ url: "http://mcp.example/mcp", auth })).toThrow(/unencrypted to mcp\.example/);
    expect(wrong({ url: "https://mcp.example/mcp", auth, headers: { authorization: "x" } })).toThrow(/one of the two/);
    expect(wrong({ url: "https://mcp.example/mcp", auth: "secret" })).toThrow(/@tenon\/client\/auth/);
    expect(() => bearer("two words")).toThrow(expect.objectContaining({ code: "invalid_option" }));
  });
});

describe("a program in its own name", () => {
  it("gets a token with its secret, once for calls at the same time, and keeps it", async () => {
    const { issuer, server } = await scene({ issuer: { tokenMs: 50 } });
    const auth = clientCredentials({ clientId: "nightly", clientSecret: "s3cret", scopes: ["read"] });
    const client = connect({ s: { ...server.config, auth, required: true } });
    await Promise.all(Array.from({ length: 10 }, (_, n) => client.callTool("s", "t", { n })));
    const authorization = `Basic ${Buffer.from("nightly:s3cret").toString("base64")}`;
    expect(issuer.tokenRequests).toEqual([
      { grant_type: "client_credentials", scope: "read", resource: server.url, authorization },
    ]);
  });

  it("sends its secret in the body where the issuer takes it only there", async () => {
    const metadata: IssuerBehavior["metadata"] = (all) => ({
      ...all,
      token_endpoint_auth_methods_supported: ["client_secret_post"],
    });
    const { issuer, server } = await scene({ issuer: { metadata } });
    const auth = clientCredentials({ clientId: "nightly", clientSecret: "s3cret" });
    await connect({ s: { ...server.config, auth, required: true } }).listTools();
    expect(issuer.tokenRequests).toMatchObject([{ client_id: "nightly", client_secret: "s3cret" }]);
    expect(issuer.tokenRequests[0]).not.toHaveProperty("authorization");
  });

  it("gets another one shortly before it ends, and with more scopes where a call lacks them", async () => {
    const needs = (method: string) => (method === "tools/call" ? "write" : undefined);
    const { issuer, server } = await scene({ issuer: { lifetime: 2 }, server: { needs } });
    const auth = clientCredentials({ clientId: "nightly", clientSecret: "s3cret", scopes: ["read"] });
    const client = connect({ s: { ...server.config, auth, required: true } });
    await client.listTools();
    await client.callTool("s", "t");
    expect(issuer.tokenRequests.map(({ scope }) => scope)).toEqual(["read", "read write"]);
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await client.callTool("s", "t");
    expect(issuer.tokenRequests.map(({ scope }) => scope)).toEqual(["read", "read write", "read write"]);
    expect(server.count("server/discover")).toBe(1);
  });

  it("signs with its key, and a refused one says why without what was sent", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const onToken: IssuerBehavior["onToken"] = (params) => ({
      status: 401,
      body: { error: "invalid_client", error_description: `no ${params.get("client_assertion")}` },
    });
    const { issuer, server } = await scene({ issuer: { onToken } });
    const auth = clientCredentials({ clientId: "nightly", privateKey: pem, algorithm: "ES256" });
    const error = await caught(connect({ s: { ...server.config, auth, required: true } }).listTools());
    expect(error).toMatchObject({ code: "token_request_failed", data: { error: "invalid_client" } });
    const [request] = issuer.tokenRequests;
    const [head, body, signature] = (request?.client_assertion ?? "").split(".");
    const key = {
      key: createPublicKey(publicKey.export({ type: "spki", format: "pem" })),
      dsaEncoding: "ieee-p1363",
    } as const;
    expect(verify("sha256", Buffer.from(`${head}.${body}`), key, Buffer.from(signature ?? "", "base64url"))).toBe(true);
    const claims = JSON.parse(Buffer.from(body ?? "", "base64url").toString());
    expect(claims).toMatchObject({ iss: "nightly", sub: "nightly", aud: issuer.url });
    expect(request).not.toHaveProperty("client_secret");
  });

  it("never has its secret repeated, whatever the issuer answers", async () => {
    const onToken: IssuerBehavior["onToken"] = (_, req) => ({
      status: 400,
      body: { error: "invalid_request", error_description: `s3cret was in ${req.headers.authorization}` },
    });
    const { server } = await scene({ issuer: { onToken } });
    const auth = clientCredentials({ clientId: "nightly", clientSecret: "s3cret" });
    const client = connect({ s: { ...server.config, auth, required: true } });
    const error = (await caught(client.listTools())) as Error;
    expect(`${error.message} ${error.stack} ${JSON.stringify(client.servers())} ${String(error.cause)}`).not.toContain(
      "s3cret",
    );
  });

  it("that runs on a platform exchanges the platform's token, and does not insist", async () => {
    const seen: object[] = [];
    const { issuer, server } = await scene({
      issuer: { onToken: () => ({ status: 400, body: { error: "invalid_grant" } }) },
    });
    const auth = workloadIdentity({ token: (request) => (seen.push(request) > 0 ? "jwt.of.platform\n" : "") });
    const client = connect({ s: { ...server.config, auth, required: true } });
    const error = await caught(client.listTools());
    expect(error).toMatchObject({ code: "token_request_failed", data: { error: "invalid_grant" }, retryable: false });
    expect(seen).toEqual([{ server: "s", issuer: issuer.url, resource: server.url, scopes: [] }]);
    expect(issuer.tokenRequests).toMatchObject([
      { grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion: "jwt.of.platform" },
    ]);
  });

  it("for somebody of a company takes the identity provider's word", async () => {
    const grant = "urn:ietf:params:oauth:grant-type:token-exchange";
    const idp = await start(
      startIssuer({
        onToken: () => ({
          status: 200,
          body: {
            access_token: "the.id.jag",
            issued_token_type: "urn:ietf:params:oauth:token-type:id-jag",
            token_type: "N_A",
          },
        }),
      }),
    );
    const issuer = await start(
      startIssuer({ onToken: () => ({ status: 200, body: { access_token: "for-ann", token_type: "Bearer" } }) }),
    );
    issuer.tokens.set("for-ann", "");
    const server = await start(stubHttp({ onHttp: protectedBy(() => issuer) }));
    const auth = enterpriseManaged({
      clientId: "desk",
      clientSecret: "s3cret",
      idToken: () => "ann.id.token",
      idp: { issuer: idp.url, clientId: "desk-at-idp" },
    });
    await connect({ s: { ...server.config, auth, required: true } }).listTools();
    expect(idp.tokenRequests).toMatchObject([
      {
        grant_type: grant,
        subject_token: "ann.id.token",
        audience: issuer.url,
        resource: server.url,
        client_id: "desk-at-idp",
      },
    ]);
    expect(issuer.tokenRequests).toMatchObject([
      {
        grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
        assertion: "the.id.jag",
        authorization: expect.stringMatching(/^Basic /),
      },
    ]);
  });

  it("does without a key that binds tokens only if it did not ask for one", async () => {
    const { server } = await scene();
    const auth = clientCredentials({ clientId: "nightly", clientSecret: "s3cret", dpop: true });
    const error = await caught(connect({ s: { ...server.config, auth, required: true } }).listTools());
    expect(error).toMatchObject({ code: "dpop_unsupported" });
  });
});

describe("tokens in a file", () => {
  it("are its owner's only, and outlive the process", async () => {
    const { issuer, server, onAuthorize } = await scene();
    const path = join(folder(), "inner", "tokens.json");
    const client = () =>
      connect({ s: { ...server.config, auth: oauth({ store: fileTokenStore(path), onAuthorize }), required: true } });
    await client().listTools();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700);
    const before = server.hits.length;
    await client().listTools();
    expect(server.hits.slice(before).every(({ headers }) => headers.authorization !== undefined)).toBe(true);
    // a restart with a token that ended meanwhile: it is renewed, nobody is asked
    issuer.expireAll();
    await client().listTools();
    expect(issuer.tokenRequests.map(({ grant_type }) => grant_type)).toEqual(["authorization_code", "refresh_token"]);
    expect(issuer.registrations).toHaveLength(1);
  });

  it("are not taken from a file that others can read, is damaged, or no file", async () => {
    const at = folder();
    const path = join(at, "tokens.json");
    writeFileSync(path, '{"version":1,"entries":{"a":"secret"}}', { mode: 0o600 });
    chmodSync(path, 0o640);
    const error = await caught(fileTokenStore(path).get("a"));
    expect(error).toMatchObject({
      name: "ConfigError",
      code: "bad_token_store",
      message: expect.stringMatching(/0640.*chmod 600/s),
    });
    writeFileSync(path, '{"version":1,"entries":{"a":"secret"', { mode: 0o600 });
    chmodSync(path, 0o600);
    const damaged = await caught(fileTokenStore(path).set("b", 1));
    expect(damaged).toMatchObject({ code: "bad_token_store" });
    expect(String(damaged)).not.toContain("secret");
    mkdirSync(join(at, "folder"));
    expect(await caught(fileTokenStore(join(at, "folder")).get("a"))).toMatchObject({ code: "bad_token_store" });
  });

  it("are renewed by one of two processes, and both have the new one", async () => {
    const { issuer, server, onAuthorize } = await scene({ issuer: { tokenMs: 200 } });
    const path = join(folder(), "tokens.json");
    const auth = oauth({ store: fileTokenStore(path), onAuthorize });
    await connect({ s: { ...server.config, auth, required: true } }).listTools();
    issuer.expireAll();
    const script = await program("./auth-process.ts", import.meta.url);
    const run = async () => {
      const args = [script, server.url, path];
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      let text = "";
      child.stdout.on("data", (chunk) => {
        text += chunk;
      });
      const [code] = await once(child, "exit");
      return `${code} ${text}`;
    };
    expect(await Promise.all([run(), run()])).toEqual(["0 1 tool\n", "0 1 tool\n"]);
    expect(issuer.tokenRequests.map(({ grant_type }) => grant_type)).toEqual(["authorization_code", "refresh_token"]);
    expect(issuer.reused).toEqual([]);
    expect(Object.keys(JSON.parse(readFileSync(path, "utf8")).entries)).toHaveLength(3);
  }, 60_000);

  it("lose nothing when many are written at once", async () => {
    const store = fileTokenStore(join(folder(), "tokens.json"));
    const keys = Array.from({ length: 20 }, (_, n) => `k${n}`);
    await Promise.all(keys.map((key) => store.set(key, key)));
    expect(await Promise.all(keys.map((key) => store.get(key)))).toEqual(keys);
    await store.set("k0", undefined);
    expect(await store.get("k0")).toBeUndefined();
  });
});

describe("a token bound to a key", () => {
  it("goes with a proof of its own for every request, and the key outlives the process", async () => {
    const { issuer, server, onAuthorize } = await scene({
      issuer: { token: (all) => ({ ...all, token_type: "DPoP" }) },
    });
    const path = join(folder(), "tokens.json");
    const run = () => {
      const auth = oauth({ store: fileTokenStore(path), onAuthorize, dpop: true });
      return connect({ s: { ...server.config, auth, required: true } });
    };
    await run().callTool("s", "t");
    await run().callTool("s", "t");
    expect(issuer.tokenRequests).toHaveLength(1);
    const signed = server.hits.filter(({ headers }) => headers.authorization !== undefined);
    const proofs = signed.map(({ headers }) => {
      expect(headers.authorization).toMatch(/^DPoP at-/);
      const [head, claims] = (headers.dpop ?? "").split(".").map((part) => Buffer.from(part, "base64url").toString());
      return { key: JSON.stringify(JSON.parse(head ?? "").jwk), ...JSON.parse(claims ?? "") };
    });
    expect(proofs.every(({ htm, htu }) => htm === "POST" && htu === server.url)).toBe(true);
    expect(new Set(proofs.map(({ jti }) => jti)).size).toBe(proofs.length);
    expect(new Set(proofs.map(({ key }) => key)).size).toBe(1);
    expect(proofs[0].key).not.toContain('"d"');
  });
});

describe("whose token", () => {
  it("is never sent to another origin, and not along a redirect", async () => {
    const { issuer, server, onAuthorize } = await scene();
    const other = await start(stubHttp());
    let redirecting = false;
    const gate = await start(
      stubHttp({
        onHttp: (req, res, body) => {
          if (redirecting && req.method === "POST") {
            res.writeHead(307, { location: other.url }).end();
            return true;
          }
          return protectedBy(() => issuer)(req, res, body);
        },
      }),
    );
    const auth = oauth({ onAuthorize });
    const client = connect({ s: { ...gate.config, auth }, t: server.config, o: other.config });
    await client.callTool("s", "t");
    redirecting = true;
    expect(await caught(client.callTool("s", "t"))).toMatchObject({ code: "redirected" });
    await client.callTool("o", "t");
    await caught(client.callTool("t", "t"));
    const strangers = [...other.hits, ...server.hits];
    expect(strangers.length).toBeGreaterThan(1);
    expect(strangers.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
  });

  it("is one per server where two share what made it", async () => {
    const { issuer, server, onAuthorize } = await scene();
    const second = await start(stubHttp({ onHttp: protectedBy(() => issuer) }));
    const auth = oauth({ onAuthorize });
    const client = connect({ a: { ...server.config, auth }, b: { ...second.config, auth } });
    await client.listTools();
    expect(issuer.tokenRequests.map(({ resource }) => resource).sort()).toEqual([server.url, second.url].sort());
    const [a, b] = [server, second].map(({ hits }) => hits.at(-1)?.headers.authorization);
    expect(a).not.toBe(b);
  });

  it("gives way to a call's own header, for that call only", async () => {
    const { issuer, server } = await scene();
    issuer.tokens.set("shared", "");
    issuer.tokens.set("personal", "");
    const client = connect({ s: { ...server.config, auth: bearer("shared"), required: true } });
    await client.listTools();
    const own = { headers: { Authorization: "Bearer personal" } };
    await client.callTool("s", "t", {}, own);
    expect(server.hits.at(-1)?.headers.authorization).toBe("Bearer personal");
    await client.callTool("s", "t");
    expect(server.hits.at(-1)?.headers.authorization).toBe("Bearer shared");
    issuer.tokens.delete("personal");
    expect(await caught(client.callTool("s", "t", {}, own))).toMatchObject({ code: "unauthorized" });
  });

  it("decides what is seen: another principal gets neither the catalog nor the resources of the one before", async () => {
    const lists: Record<string, string[]> = { ann: ["for_ann"], bob: ["for_bob"] };
    let caller = "";
    const server = await start(
      stubHttp({
        capabilities: { tools: {}, resources: {} },
        onHttp: (req) => {
          caller = (req.headers.authorization ?? "").slice("Bearer ".length);
          return undefined;
        },
        tools: () => lists[caller] ?? [],
        on: {
          "resources/list": () => ({ resources: [{ uri: `note://${caller}`, name: caller }] }),
          "resources/read": () => ({ contents: [{ uri: "note://own", text: `secret of ${caller}` }] }),
        },
      }),
    );
    let now = "ann";
    const client = connect({ s: { ...server.config, auth: bearer(() => now) } });
    const view = async () => ({
      tools: (await client.listTools()).map(({ wireName }) => wireName),
      listed: (await client.listResources()).map(({ uri }) => uri),
      read: (await client.readResources("s", ["note://own"])).map((blob) => blob.asString()),
    });
    const ofAnn = { tools: ["for_ann"], listed: ["note://ann"], read: ["secret of ann"] };
    const ofBob = { tools: ["for_bob"], listed: ["note://bob"], read: ["secret of bob"] };
    expect(await view()).toEqual(ofAnn);
    const before = server.requests.length;
    expect(await view()).toEqual(ofAnn);
    expect(server.requests.length).toBe(before); // all of it was kept
    now = "bob";
    expect(await view()).toEqual(ofBob);
    expect(await caught(client.dispatch("mcp_s_for_ann"))).toMatchObject({ code: "unknown_tool" });
    now = "ann";
    expect(await view()).toEqual(ofAnn);
    expect(server.count("server/discover")).toBe(2); // what it says is kept for each of them
  });

  it("is kept apart even when calls for several people run at the same time", async () => {
    const server = await start(
      stubHttp({
        tools: [{ name: "t", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }],
        onCall: async ({ headers }) => {
          await new Promise((resolve) => setTimeout(resolve, 5));
          return { content: [{ type: "text", text: headers.authorization }] };
        },
      }),
    );
    const who = new AsyncLocalStorage<string>();
    const auth = bearer(() => who.getStore() ?? "nobody");
    const once = cache({ ttlMs: 60_000 });
    const client = connect({ s: { ...server.config, auth } }, { interceptors: [once] });
    const asked = Array.from({ length: 24 }, (_, n) => `p${n % 4}`);
    const answers = await Promise.allSettled(
      asked.map((name) => who.run(name, async () => renderText((await client.callTool("s", "t")).content))),
    );
    let own = 0;
    for (const [index, answer] of answers.entries()) {
      if (answer.status === "fulfilled") expect(answer.value).toBe(`Bearer ${asked[index]}`);
      else expect(answer.reason).toMatchObject({ code: "identity_changed", maybeExecuted: false });
      if (answer.status === "fulfilled") own++;
    }
    expect(own).toBeGreaterThan(0);
  });

  it("decides which session of the older revision is used", async () => {
    const server = await start(stubHttp({ era: "legacy" }));
    let now = "ann";
    const client = connect({ s: { ...server.config, auth: bearer(() => now) } });
    expect(renderText((await client.callTool("s", "t", { n: 1 })).content)).toBe('{"n":1}');
    now = "bob";
    await client.callTool("s", "t", { n: 2 });
    const callers = new Map<string, Set<string | undefined>>();
    for (const { headers } of server.hits) {
      const session = headers["mcp-session-id"];
      if (session) callers.set(session, (callers.get(session) ?? new Set()).add(headers.authorization));
    }
    expect([...callers.values()].map((set) => set.size)).toEqual([1, 1]);
  });
});
