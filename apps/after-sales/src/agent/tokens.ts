import { readFileSync, statSync } from "node:fs";
import { ConfigError, isRecord, keepNewest, messageOf } from "@tenon/core";
import { type SigningKey, signToken } from "@tenon/server/development";
import { AUDIENCES, ISSUER, SCOPES } from "../servers/access.ts";
import type { ServerName } from "../servers/names.ts";
import type { DeskContext } from "./interceptors.ts";

/** Where the tokens for one server come from. */
export type TokenSource = (userId: string) => Promise<string>;

/** Milliseconds a token lives. */
const LIFE_MS = 15 * 60_000;
/** A token with less left is not used any more: a call that begins with it may take so long. */
const LEFT_MS = 10 * 60_000;
/** Users whose tokens are held at once; the one made longest ago goes first. */
const MAX_HELD = 1_000;
const MAX_TOKEN_BYTES = 16 * 1024;

/**
 * Tokens of the desk's own for one server: short-lived, one per user, held in memory only and renewed before they end.
 * @param now milliseconds since 1970
 */
export function mintedTokens(key: SigningKey, server: ServerName, now: () => number = Date.now): TokenSource {
  const held = new Map<string, { token: Promise<string>; until: number }>();
  return (userId) => {
    const found = held.get(userId);
    if (found && found.until > now()) return found.token;
    const token = signToken({
      key,
      issuer: ISSUER,
      audience: AUDIENCES[server],
      subject: userId,
      scopes: SCOPES[server],
      clientId: "after-sales-desk",
      ttlMs: LIFE_MS,
      issuedAt: new Date(now()),
    });
    keepNewest(held, userId, { token, until: now() + LIFE_MS - LEFT_MS }, MAX_HELD);
    return token;
  };
}

/** A token from a file, read before every use: whoever renews it writes it there. @throws ConfigError `code: "token_file"` */
export function readTokenFile(path: string): string {
  try {
    if (statSync(path).size > MAX_TOKEN_BYTES) throw new Error("it is too large");
    const token = readFileSync(path, "utf8").trim();
    if (/^[\w\-.~+/]+=*$/.test(token)) return token;
    throw new Error("it holds no token");
  } catch (cause) {
    // what the file holds is a secret, even if it is no token
    const why = messageOf(cause);
    throw new ConfigError(`The token file ${path} cannot be used: ${why}`, { code: "token_file" });
  }
}

/** What a token says about itself, where it is a JWT: to explain a refusal, never to decide. */
export interface TokenClaims {
  readonly subject?: string;
  readonly name?: string;
  readonly issuer?: string;
  readonly audience?: string;
  /** Milliseconds since 1970. */
  readonly expiresAt?: number;
  readonly scopes?: readonly string[];
}

/** Reads a token without checking it. */
export function claimsOf(token: string): TokenClaims {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    if (!isRecord(claims)) return {};
    const { sub, name, iss, aud, exp, scope } = claims;
    const audience = [aud].flat().filter((one) => typeof one === "string");
    return {
      ...(typeof sub === "string" && { subject: sub }),
      ...(typeof name === "string" && { name }),
      ...(typeof iss === "string" && { issuer: iss }),
      ...(audience.length > 0 && { audience: audience.join(" ") }),
      ...(typeof exp === "number" && { expiresAt: exp * 1_000 }),
      ...(typeof scope === "string" && { scopes: scope.split(" ") }),
    };
  } catch {
    return {}; // an opaque one
  }
}

/**
 * Who is in front of the desk: whoever the given tokens are of, else `usual`.
 * @throws ConfigError `code: "token_user"` when they are of different people
 */
export function userOf(tokens: readonly string[], usual: DeskContext): DeskContext {
  const named = tokens.map(claimsOf).filter((claims) => claims.subject !== undefined);
  const [first, ...others] = named;
  if (first?.subject === undefined) return usual;
  const other = others.find((claims) => claims.subject !== first.subject);
  if (other) {
    throw new ConfigError(
      `The tokens are of different users, ${first.subject} and ${other.subject}: a conversation is one person's`,
      { code: "token_user" },
    );
  }
  const name = named.find((claims) => claims.name !== undefined)?.name;
  if (first.subject === usual.userId) return { ...usual, ...(name !== undefined && { userName: name }) };
  return { userId: first.subject, userName: name ?? first.subject };
}
