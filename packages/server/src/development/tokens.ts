import { randomUUID } from "node:crypto";
import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { SignJWT } from "jose";
import type { SigningKey } from "./keys.ts";

/** The issuer of development tokens where none is named: where `tenon auth-server` listens by default. */
export const DEVELOPMENT_ISSUER = "http://127.0.0.1:4749";
/** The `client_id` of a token where none is named. */
const DEVELOPMENT_CLIENT = "tenon-development";

const DEFAULT_MS = 3_600_000;
/** A development token that lives longer ends up in a script, and then in production. */
const MAX_MS = 86_400_000;
const MAX_CLAIMS_BYTES = 8 * 1024;
/** Claims that have an option of their own, or are made here. */
const RESERVED = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "scope", "client_id", "cnf"];
/** A scope (RFC 6749, 3.3). */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Who a token is about, and who may take it. */
export interface TokenOptions {
  /** What signs it: `createSigningKey`, `openSigningKey` or `loadSigningKey` make one. */
  key: SigningKey;
  /** `iss`: what the server that checks the token expects. Default `DEVELOPMENT_ISSUER`. */
  issuer?: string;
  /** `sub`: the user. */
  subject: string;
  /** `aud`: the server's address, for example `http://127.0.0.1:8000/mcp`. Required: a token for everyone can be replayed anywhere. */
  audience: string | readonly string[];
  /** What it is good for. Default: none. */
  scopes?: readonly string[];
  /** `client_id`. Default `DEVELOPMENT_CLIENT`. */
  clientId?: string;
  /** Milliseconds it lives from `issuedAt` on, a second to a day; parts of a second are dropped. Default 3,600,000: an hour. */
  ttlMs?: number;
  /** `nbf`: not to be taken before. */
  notBefore?: Date;
  /** `iat`. Default now; a time in the past makes a token that has expired, to test with. */
  issuedAt?: Date;
  /** Further claims. Those that have an option here, and `jti`, are refused. */
  claims?: Readonly<Record<string, unknown>>;
}

/** `data` has the problem alone: a command line has no function to name. */
const refuse = (problem: string): ConfigError =>
  new ConfigError(`signToken(options): ${problem}`, { code: "token", data: { problem, fix: "correct it" } });

function text(value: unknown, name: string, hint: string): string {
  if (typeof value === "string" && value.trim() !== "") return value;
  throw refuse(`${name} is missing; expected ${hint}`);
}

function seconds(date: Date, name: string): number {
  const time = date instanceof Date ? date.getTime() : Number.NaN;
  if (Number.isFinite(time)) return Math.floor(time / 1000);
  throw refuse(`${name} is not a valid Date`);
}

function checkClaims(claims: unknown): Record<string, unknown> {
  if (claims === undefined) return {};
  if (!isRecord(claims)) throw refuse("claims must be an object of names and JSON values");
  const reserved = Object.keys(claims).find((name) => RESERVED.includes(name));
  if (reserved) throw refuse(`claims may not set "${reserved}"; use the option for it, or leave it to signToken`);
  if (JSON.stringify(claims).length > MAX_CLAIMS_BYTES) {
    throw refuse(`claims are larger than ${MAX_CLAIMS_BYTES} bytes, more than fits into a header`);
  }
  return claims;
}

/**
 * Signs a JWT access token (RFC 9068) for development and tests.
 * @returns the token: header with `alg`, `kid` and `typ: at+jwt`; claims `iss sub aud iat exp jti client_id`, and `scope` as
 * one string where there are scopes
 * @throws ConfigError `code: "token"` naming the option that is missing or wrong
 * @example
 * const token = await signToken({ key, subject: "alice", audience: "http://127.0.0.1:8000/mcp", scopes: ["orders:read"] });
 */
export async function signToken(options: TokenOptions): Promise<string> {
  checkOptions(
    options,
    ["key", "issuer", "subject", "audience", "scopes", "clientId", "ttlMs", "notBefore", "issuedAt", "claims"],
    "signToken(options)",
  );
  const { key, scopes = [], ttlMs = DEFAULT_MS, issuedAt = new Date(), notBefore } = options;
  const address = "the address of the server that takes the token";
  const audience = [options.audience].flat().map((one) => text(one, "audience", address));
  const [first] = audience;
  if (first === undefined) throw refuse(`audience is missing; expected ${address}`);
  const badScope = scopes.find((scope) => !SCOPE.test(scope));
  if (badScope !== undefined) {
    throw refuse(`${JSON.stringify(badScope)} is no scope; expected printable characters without spaces and quotes`);
  }
  if (!(ttlMs >= 1_000 && ttlMs <= MAX_MS)) {
    throw refuse(`ttlMs is ${ttlMs}; expected 1,000 to 86,400,000 milliseconds: a second to a day`);
  }
  const iat = seconds(issuedAt, "issuedAt");
  return new SignJWT({
    ...checkClaims(options.claims),
    iss: text(options.issuer ?? DEVELOPMENT_ISSUER, "issuer", "the issuer the server expects"),
    sub: text(options.subject, "subject", "the user the token is about"),
    aud: audience.length === 1 ? first : audience,
    client_id: text(options.clientId ?? DEVELOPMENT_CLIENT, "clientId", "the program the token was given to"),
    iat,
    exp: iat + Math.floor(ttlMs / 1_000),
    jti: randomUUID(),
    ...(scopes.length > 0 && { scope: [...new Set(scopes)].join(" ") }),
    ...(notBefore !== undefined && { nbf: seconds(notBefore, "notBefore") }),
  })
    .setProtectedHeader({ alg: key.algorithm, kid: key.kid, typ: "at+jwt" })
    .sign(key.privateKey);
}
