import type { Caller } from "../handler/context.ts";
import { invalidToken } from "./errors.ts";
import { type AcceptRules, texts } from "./options.ts";
import type { VerifiedToken } from "./types.ts";

/** What claims have to say at least. */
export interface ClaimDemands {
  /** Claims without which the token is refused. */
  readonly required: readonly ("iss" | "exp")[];
}

/** Scopes as issuers write them: one text with blanks (RFC 6749), or a list. */
function scopesOf(claims: Readonly<Record<string, unknown>>, claim: string | undefined): readonly string[] {
  const given = claim === undefined ? (claims.scope ?? claims.scp) : claims[claim];
  const words = typeof given === "string" ? given.split(" ") : Array.isArray(given) ? given : [];
  return [...new Set(words.filter((word): word is string => typeof word === "string" && word !== ""))];
}

/** Time claims are numbers of seconds (RFC 7519); anything else is no time. */
function time(claims: Readonly<Record<string, unknown>>, name: "exp" | "nbf" | "iat"): number | undefined {
  const value = claims[name];
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return value * 1_000;
  throw invalidToken("claims", `The token's ${name} is no time`);
}

/** Nobody may change what a caller is: one object serves all requests with the same token. */
function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) freeze(part);
  }
  return value;
}

const textClaim = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/**
 * Reads claims that are known to come from their issuer (RFC 7519, section 4; RFC 9068, section 4).
 * @throws AuthError `code: "invalid_token"`
 */
export function readClaims(
  claims: Readonly<Record<string, unknown>>,
  rules: AcceptRules,
  { required }: ClaimDemands,
): VerifiedToken {
  const now = Date.now();
  const { clockSkewMs: skew, issuer } = rules;
  if ((claims.iss ?? (required.includes("iss") ? undefined : issuer)) !== issuer) {
    throw invalidToken("issuer", "The token is from another issuer", [issuer]);
  }
  // taken without its proof, a token that is bound to a key (RFC 7800: DPoP, mutual TLS) would be as good for a thief as for its owner
  if (claims.cnf !== undefined) {
    throw invalidToken("bound", "The token is bound to a key of its client (cnf), for which this server cannot ask");
  }
  if (!texts(claims.aud).some((one) => rules.audiences.includes(one))) {
    throw invalidToken("audience", "The token was not issued for this server", rules.audiences);
  }
  const expires = time(claims, "exp");
  if (expires === undefined && required.includes("exp")) throw invalidToken("claims", "The token has no expiry");
  const expiresAt = expires === undefined ? Number.POSITIVE_INFINITY : expires + skew;
  if (expiresAt <= now) throw invalidToken("expired", "The token has expired");
  for (const begin of ["nbf", "iat"] as const) {
    const from = time(claims, begin);
    if (from !== undefined && from - skew > now) {
      throw invalidToken("not_yet_valid", "The token is from the future; compare the clocks");
    }
  }
  const subject = textClaim(claims[rules.subjectClaim]);
  if (subject === undefined) throw invalidToken("claims", `The token does not say who calls (${rules.subjectClaim})`);
  const clientId = textClaim(claims.client_id) ?? textClaim(claims.azp);
  const caller: Caller = {
    subject,
    ...(clientId !== undefined && { clientId }),
    issuer,
    scopes: scopesOf(claims, rules.scopesClaim),
    claims,
  };
  return {
    caller: freeze(caller),
    expiresAt,
    freshUntil: Math.min(expiresAt, now + rules.cacheMs),
    requiredScopes: rules.requiredScopes,
  };
}
