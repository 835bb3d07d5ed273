import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from "jose";
import { describe, expect, it } from "vitest";
import { createSigningKey, publicJwks, signToken, type TokenOptions } from "./index.ts";
import { SIGNING_ALGORITHMS } from "./keys.ts";

const audience = "http://127.0.0.1:8000/mcp";
const issuer = "http://127.0.0.1:4749";
const key = await createSigningKey();
const sign = (more: Partial<TokenOptions> = {}): Promise<string> =>
  signToken({ key, subject: "alice", audience, ...more });
const verify = (token: string, from = key) =>
  jwtVerify(token, createLocalJWKSet(publicJwks(from)), { issuer, audience, typ: "at+jwt" });

describe("a development token", () => {
  it.each(SIGNING_ALGORITHMS)("signed with %s is accepted by whoever has the public key set", async (algorithm) => {
    const one = await createSigningKey({ algorithm });
    const { payload, protectedHeader } = await verify(await sign({ key: one }), one);
    expect(protectedHeader).toEqual({ alg: algorithm, kid: one.kid, typ: "at+jwt" });
    expect(payload.sub).toBe("alice");
    await expect(verify(await sign({ key: one }))).rejects.toThrow();
  });
  it("says who, for whom, until when and what for", async () => {
    const token = await sign({ scopes: ["orders:read", "orders:refund", "orders:read"], claims: { tenant: "acme" } });
    const claims = decodeJwt(token);
    expect(claims).toMatchObject({ iss: issuer, sub: "alice", aud: audience, client_id: "tenon-development" });
    expect(claims.scope).toBe("orders:read orders:refund");
    expect(claims.tenant).toBe("acme");
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(3600);
    expect(decodeProtectedHeader(token).kid).toBe(key.kid);
    expect(decodeJwt(await sign()).jti).not.toBe(claims.jti);
    expect(decodeJwt(await sign()).scope).toBeUndefined();
  });
  it("can be one that has expired, or is not valid yet", async () => {
    const past = await sign({ issuedAt: new Date(Date.now() - 7_200_000) });
    await expect(verify(past)).rejects.toThrow(/"exp"/);
    const later = await sign({ notBefore: new Date(Date.now() + 3_600_000) });
    await expect(verify(later)).rejects.toThrow(/"nbf"/);
  });
  it.each<[string, Record<string, unknown>, string]>([
    ["no audience", { audience: undefined }, "audience is missing"],
    ["an empty audience", { audience: "" }, "audience is missing"],
    ["an empty list of audiences", { audience: [] }, "audience is missing"],
    ["no subject", { subject: " " }, "subject is missing"],
    ["a lifetime beyond a day", { ttlMs: 86_401_000 }, "ttlMs is 86401000"],
    ["no lifetime", { ttlMs: 0 }, "expected 1,000 to 86,400,000"],
    ["a fraction of a second", { ttlMs: 500 }, "a second to a day"],
    ["a lifetime that is no number", { ttlMs: Number.NaN }, "ttlMs is NaN"],
    ["a scope with a space", { scopes: ["a b"] }, '"a b" is no scope'],
    ["a claim that has an option", { claims: { sub: "root" } }, 'may not set "sub"'],
    ["a claim that binds the token to another key", { claims: { cnf: {} } }, 'may not set "cnf"'],
    ["claims that are a list", { claims: ["a"] }, "claims must be an object"],
    ["claims beyond a header", { claims: { a: "x".repeat(9_000) } }, "larger than"],
    ["a time that is none", { notBefore: new Date("never") }, "notBefore is not a valid Date"],
    ["a typing error", { audiance: audience }, 'did you mean "audience"'],
  ])("is refused with %s", async (_, wrong, message) => {
    await expect(sign(wrong as Partial<TokenOptions>)).rejects.toThrow(message); // what a program without types may give
  });
});
