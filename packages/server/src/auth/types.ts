import type { Caller } from "../handler/context.ts";
import type { ServerLog } from "../log.ts";

/** What a token turned out to be. */
export interface VerifiedToken {
  /** With the scopes the token says, without what a hierarchy adds. */
  readonly caller: Caller;
  /** Milliseconds since 1970 after which the token is worth nothing. Infinity where its issuer sets no end. */
  readonly expiresAt: number;
  /** Milliseconds since 1970 until which the token need not be looked at again. */
  readonly freshUntil: number;
  /** Scopes without which this token opens nothing. */
  readonly requiredScopes: readonly string[];
}

/**
 * Decides which tokens a server takes: what `createServer({ auth })` is given. `jwt`, `introspection` and `anyOf` make them; one
 * of your own needs the same care about the audience.
 */
export interface TokenVerifier {
  /** Issuers whose tokens it takes: the authorization servers that clients are pointed to. */
  readonly issuers: readonly string[];
  /** The server's own address as clients know it; undefined: what a request says it was sent to. */
  readonly resource: string | undefined;
  /** Scopes that every request needs. */
  readonly requiredScopes: readonly string[];
  /** Scopes a client should ask for first. */
  readonly scopesSupported: readonly string[];
  /**
   * Looks at one token. Its size was checked; results are kept by the server until `freshUntil`.
   * @throws AuthError `code: "invalid_token"` for a token that is not taken, `data.reason` says why; ConnectionError
   * `code: "auth_unavailable"` when that cannot be found out now
   */
  verify(token: string, log: ServerLog): Promise<VerifiedToken>;
}

/** Why a token is not taken, from what was found out first to last. */
export const REASONS = [
  "malformed",
  "type",
  "algorithm",
  "issuer",
  "inactive",
  "unknown_key",
  "signature",
  "claims",
  "bound",
  "audience",
  "not_yet_valid",
  "expired",
] as const;
export type InvalidReason = (typeof REASONS)[number];
