import { generateKeyPairSync } from "node:crypto";
import { exportPKCS8, generateKeyPair } from "jose";
import { beforeAll, describe, expect, it } from "vitest";
import { AUDIENCE, accepts, createSigner, ISSUER, type Signer, sign } from "../../test/tokens.ts";
import { createSigningKey, DEVELOPMENT_ISSUER, publicJwks, publicPem, signToken } from "../development/index.ts";
import { SIGNING_ALGORITHMS } from "../development/keys.ts";
import { createServer } from "../index.ts";
import { introspection, type JwtOptions, jwt, type TokenVerifier } from "./index.ts";
import { ALGORITHMS } from "./keys.ts";

let signer: Signer;
beforeAll(async () => {
  signer = await createSigner("k1");
});
const quiet = (): void => undefined;
const look = async (verifier: TokenVerifier, token: string | Promise<string>) => verifier.verify(await token, quiet);
const reasonOf = (verifier: TokenVerifier, token: string | Promise<string>): Promise<unknown> =>
  look(verifier, token).then(
    () => "accepted",
    (error) => error.data?.reason ?? error.code,
  );

describe("a signed token", () => {
  it.each(ALGORITHMS)("with %s is checked with a key as PEM and as JWK", async (alg) => {
    const by = await createSigner("k", alg);
    for (const publicKey of [by.pem, by.jwk]) {
      const verifier = jwt({ issuer: ISSUER, audience: AUDIENCE, publicKey });
      expect((await look(verifier, sign(by, "alice"))).caller.subject).toBe("alice");
      expect(await reasonOf(verifier, sign({ ...by, privateKey: signer.privateKey, alg: "ES256" }, "alice"))).not.toBe(
        "accepted",
      );
    }
  });
  it("is checked with a key set as it is published, and the path of a file is not taken for a key", async () => {
    const publicKey = { keys: [(await createSigner("k2")).jwk, signer.jwk] };
    const verifier = jwt({ issuer: ISSUER, audience: AUDIENCE, publicKey });
    expect(await reasonOf(verifier, sign(signer, "alice"))).toBe("accepted");
    const stranger = await createSigner("k3");
    expect(await reasonOf(verifier, sign(stranger, "alice"))).toBe("unknown_key");
    for (const wrong of [{ keys: [] }, { keys: ["keys.pem"] }, { keys: [undefined] }, ".tenon/signing-key.pem"]) {
      const options = { issuer: ISSUER, audience: AUDIENCE, publicKey: wrong };
      expect(() => jwt(options as JwtOptions)).toThrow(expect.objectContaining({ code: "public_key" }));
    }
    expect(() => jwt({ issuer: ISSUER, audience: AUDIENCE, publicKey: "keys/a.pem" })).toThrow("give what is in it");
  });
  it("says who calls: subject, client, scopes, issuer, claims", async () => {
    const token = sign(signer, "zhangsan", "orders:read orders:refund", { claims: { role: "clerk" } });
    const { caller, requiredScopes } = await look(jwt(accepts(signer, { requiredScopes: ["mcp"] })), token);
    expect(caller).toMatchObject({
      subject: "zhangsan",
      clientId: "desk",
      issuer: ISSUER,
      scopes: ["orders:read", "orders:refund"],
      claims: { role: "clerk" },
    });
    expect(requiredScopes).toEqual(["mcp"]);
    expect(Object.isFrozen(caller.claims)).toBe(true);
  });
  it("says its scopes as a text or a list, where issuers put them", async () => {
    const scopes = async (claims: object, options: Partial<JwtOptions> = {}): Promise<unknown> =>
      (await look(jwt(accepts(signer, options)), sign(signer, "u", "", { claims: { ...claims } }))).caller.scopes;
    expect(await scopes({ scope: "a b  a" })).toEqual(["a", "b"]);
    expect(await scopes({ scp: ["a", "b"] })).toEqual(["a", "b"]);
    expect(await scopes({ scp: "a b" })).toEqual(["a", "b"]);
    expect(await scopes({ permissions: ["a", 7, ""] }, { scopesClaim: "permissions" })).toEqual(["a"]);
    expect(await scopes({ scope: { a: 1 } })).toEqual([]);
  });
  it("may be for several servers, and from one issuer", async () => {
    const verifier = jwt(accepts(signer, { audience: [AUDIENCE, "orders"] }));
    for (const claims of [{ aud: ["x", AUDIENCE] }, { aud: "orders" }]) {
      expect(await reasonOf(verifier, sign(signer, "u", "", { claims }))).toBe("accepted");
    }
    expect(await reasonOf(verifier, sign(signer, "u", "", { claims: { iss: "https://old.example" } }))).toBe("issuer");
  });
  it("is judged by a clock that may differ a little, and no more", async () => {
    const verifier = jwt(accepts(signer, { clockSkewMs: 20_000 }));
    const now = Math.floor(Date.now() / 1000);
    const reason = (claims: object): Promise<unknown> =>
      reasonOf(verifier, sign(signer, "u", "", { claims: { ...claims } }));
    expect(await reason({ exp: now - 5 })).toBe("accepted");
    expect(await reason({ exp: now - 40 })).toBe("expired");
    expect(await reason({ nbf: now + 5 })).toBe("accepted");
    expect(await reason({ nbf: now + 60 })).toBe("not_yet_valid");
    expect(await reason({ iat: now + 60 })).toBe("not_yet_valid");
  });
  it("may name its subject in another claim", async () => {
    const verifier = jwt(accepts(signer, { subjectClaim: "email" }));
    const token = sign(signer, "u", "", { claims: { email: "a@example.com" } });
    expect((await look(verifier, token)).caller.subject).toBe("a@example.com");
    expect(await reasonOf(verifier, sign(signer, "u"))).toBe("claims");
  });
  it("is kept no longer than it lasts, and no longer than a minute", async () => {
    const until = async (expiresIn: number, cacheTtlMs?: number): Promise<number> => {
      const verifier = jwt(accepts(signer, { clockSkewMs: 0, ...(cacheTtlMs !== undefined && { cacheTtlMs }) }));
      return ((await look(verifier, sign(signer, "u", "", { expiresIn }))).freshUntil - Date.now()) / 1000;
    };
    expect(await until(20)).toBeLessThanOrEqual(20);
    expect(await until(3_600)).toBeLessThanOrEqual(60);
    expect(await until(3_600)).toBeGreaterThan(50);
    expect(await until(3_600, 0)).toBeLessThanOrEqual(0);
  });
  it("is tried with every key that may be meant, while keys change", async () => {
    const [old, fresh] = await Promise.all([createSigner("old"), createSigner("new")]);
    const verifier = jwt({ issuer: ISSUER, audience: AUDIENCE, publicKey: [old.pem, fresh.pem] });
    for (const by of [old, fresh]) {
      expect(await reasonOf(verifier, sign(by, "u"))).toBe("accepted");
      expect(await reasonOf(verifier, sign(by, "u", "", { header: { kid: undefined } }))).toBe("accepted");
    }
    expect(await reasonOf(verifier, sign(signer, "u"))).toBe("signature");
  });
});

describe("a token made for development", () => {
  it.each(SIGNING_ALGORITHMS)("with %s is taken by a server that was told the public half", async (algorithm) => {
    const key = await createSigningKey({ algorithm });
    const token = await signToken({ key, subject: "zhangsan", audience: AUDIENCE, scopes: ["orders:read"] });
    for (const publicKey of [publicPem(key), ...publicJwks(key).keys]) {
      const verifier = jwt({ issuer: DEVELOPMENT_ISSUER, audience: AUDIENCE, publicKey });
      expect((await look(verifier, token)).caller).toMatchObject({ subject: "zhangsan", scopes: ["orders:read"] });
      expect(await reasonOf(verifier, sign(signer, "zhangsan"))).not.toBe("accepted");
    }
  });
});

describe("a configuration", () => {
  const base = (): JwtOptions => accepts(signer);
  const refusal = (change: object): unknown => {
    const { issuer, audience, publicKey } = base();
    try {
      jwt({ issuer, audience, publicKey, ...change } as JwtOptions);
    } catch (error) {
      return (error as { code: string }).code;
    }
    return "accepted";
  };
  it("without an audience is refused when the server is made, and says why", () => {
    for (const audience of [undefined, "", [], [""], 7]) expect(refusal({ audience })).toBe("audience");
    expect(() => jwt({ ...base(), audience: "" })).toThrow(
      "a token for any other server of the same issuer would be accepted",
    );
    const without = { url: "https://login.example/introspect", issuer: ISSUER, clientId: "a", clientSecret: "b" };
    expect(() => introspection({ ...without, audience: "" })).toThrow("needs an audience");
  });
  it("without an issuer is refused", () => {
    for (const issuer of [undefined, "", []]) expect(refusal({ issuer })).toBe("issuer");
  });
  it("of several issuers is refused, since each could sign in the name of the others, and says what to write", () => {
    const both = [ISSUER, "https://b.example"] as unknown as string; // as a program without types may
    for (const keys of [{ publicKey: [signer.jwk] }, { jwksUrl: "https://login.example/jwks" }]) {
      expect(() => jwt({ issuer: both, audience: AUDIENCE, ...keys })).toThrow(/anyOf\(jwt\(.*jwt\(/);
    }
  });
  it("that would let a public key sign is refused", () => {
    for (const algorithm of ["HS256", "HS384", "HS512", "none", "None", "RS1", ""]) {
      expect(refusal({ algorithms: [algorithm] }), algorithm).toBe("algorithm");
    }
    expect(refusal({ algorithms: [] })).toBe("algorithm");
    expect(() => jwt({ ...base(), algorithms: ["HS256" as never] })).toThrow(
      "whoever can check such a token can also make one",
    );
    expect(() => jwt({ ...base(), algorithms: ["ES25" as never] })).toThrow('did you mean "ES256"');
  });
  it("with a key that is private, shared, weak, of another use or unreadable is refused", async () => {
    const { privateKey } = await generateKeyPair("ES256", { extractable: true });
    const weak = generateKeyPairSync("rsa", { modulusLength: 1_024 }).publicKey.export({ type: "spki", format: "pem" });
    const other = generateKeyPairSync("ec", { namedCurve: "secp256k1" }).publicKey.export({
      type: "spki",
      format: "pem",
    });
    for (const publicKey of [
      await exportPKCS8(privateKey),
      { ...signer.jwk, d: "x" },
      { kty: "oct", k: "c2VjcmV0" },
      weak,
      other,
      { ...signer.jwk, use: "enc" },
      { ...signer.jwk, alg: "RS256" },
      "no key",
      {},
      [],
    ]) {
      expect(refusal({ publicKey }), JSON.stringify(publicKey)).toBe("public_key");
    }
    expect(refusal({ jwksUrl: "https://login.example/jwks" })).toBe("public_key");
    expect(refusal({ publicKey: undefined })).toBe("public_key");
  });
  it("that fetches keys where others may answer is refused", () => {
    for (const jwksUrl of [
      "http://login.example/jwks",
      "file:///etc/keys",
      "login.example",
      "https://u:p@login.example",
    ]) {
      expect(refusal({ publicKey: undefined, jwksUrl }), jwksUrl).toBe("jwks_url");
    }
    for (const jwksUrl of ["https://login.example/jwks", "http://127.0.0.1:9000/jwks", "http://localhost/jwks"]) {
      expect(refusal({ publicKey: undefined, jwksUrl }), jwksUrl).toBe("accepted");
    }
  });
  it("with times beyond reason is refused", () => {
    expect(refusal({ clockSkewMs: 301_000 })).toBe("clock_skew");
    expect(refusal({ clockSkewMs: -1_000 })).toBe("clock_skew");
    expect(refusal({ cacheTtlMs: 61_000 })).toBe("cache");
    expect(refusal({ cacheTtlMs: Number.NaN })).toBe("cache");
    expect(refusal({ keysFreshMs: 0 })).toBe("keys");
  });
  it("with an option nobody reads is refused with the near one", () => {
    expect(() => jwt({ ...base(), audiense: "x" } as JwtOptions)).toThrow('did you mean "audience"');
    expect(refusal({ requiredScopes: ["a b"] })).toBe("scope");
    expect(refusal({ resource: "orders" })).toBe("resource");
  });
  it("of a server takes a verifier and nothing else", () => {
    for (const auth of [true, {}, "jwt", () => true]) {
      expect(() => createServer({ name: "s", version: "1", auth: auth as never })).toThrow(
        "auth must be a token verifier",
      );
    }
  });
});
