import { ConfigError, isLoopback } from "@tenon/core";
import { checkScopes } from "../definition/scopes.ts";

/** What every way to check tokens has to know. */
export interface AcceptOptions {
  /**
   * Who issues the tokens, exactly as `iss` says it. One: whoever holds the keys could sign in the name of every issuer listed
   * here. For several, give each its own keys: `anyOf(jwt({ issuer: a, … }), jwt({ issuer: b, … }))`.
   */
  issuer: string;
  /**
   * What a token must have been issued for (`aud`): best the server's public address, such as `https://orders.example/mcp`.
   * Without it a token for any other server of the same issuer would open this one, so there is no default.
   */
  audience: string | readonly string[];
  /** Scopes without which a token opens nothing. Default: none. */
  requiredScopes?: readonly string[];
  /**
   * The server's address as clients know it, for its metadata (RFC 9728). Default: the audience if it is an address, else what
   * each request was sent to, which behind a proxy is not what clients know.
   */
  resource?: string;
  /** Scopes a client should ask for first. Default: `requiredScopes`. */
  scopesSupported?: readonly string[];
  /** Milliseconds a clock may differ, at most 300,000. Default 30,000. */
  clockSkewMs?: number;
  /** Milliseconds a checked token is not looked at again, at most 60,000: so long a revoked one still works. Default 60,000. */
  cacheTtlMs?: number;
  /** Claim that holds who calls. Default `sub`. */
  subjectClaim?: string;
  /** Claim that holds the scopes, as a text with blanks or as a list. Default `scope`, else `scp`. */
  scopesClaim?: string;
}

export const ACCEPT_OPTIONS = [
  "issuer",
  "audience",
  "requiredScopes",
  "resource",
  "scopesSupported",
  "clockSkewMs",
  "cacheTtlMs",
  "subjectClaim",
  "scopesClaim",
] as const satisfies ReadonlyArray<keyof AcceptOptions>;

/** {@link AcceptOptions}, checked. */
export interface AcceptRules {
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly requiredScopes: readonly string[];
  readonly resource: string | undefined;
  readonly scopesSupported: readonly string[];
  readonly clockSkewMs: number;
  readonly cacheMs: number;
  readonly subjectClaim: string;
  readonly scopesClaim: string | undefined;
}

const SKEW_MS = 30_000;
const MAX_SKEW_MS = 300_000;
const MAX_CACHE_MS = 60_000;

/** One or several texts. Any other value is an empty list. */
export function texts(given: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  return list.every((one) => typeof one === "string" && one !== "") ? (list as readonly string[]) : []; // every one is a text
}

function milliseconds(given: number | undefined, fallback: number, most: number, where: string, code: string): number {
  const value = given ?? fallback;
  if (Number.isFinite(value) && value >= 0 && value <= most) return value;
  throw new ConfigError(`${where} is ${value}; expected 0 to ${most} milliseconds`, { code });
}

/**
 * An address that credentials or keys may travel to: https, or http on this machine.
 * @throws ConfigError
 */
export function checkAddress(given: string | URL, where: string, code: string): URL {
  const url = URL.canParse(String(given)) ? new URL(String(given)) : undefined;
  const safe = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname));
  if (url && safe && url.username === "" && url.password === "" && url.hash === "") return url;
  const shown = url ? `${url.protocol}//${url.host}${url.pathname}` : "the given text";
  throw new ConfigError(
    `${where}: ${shown} is not allowed; give an https address (or http on this machine) without credentials and fragment`,
    { code },
  );
}

const isAddress = (text: string): boolean => /^https?:\/\//i.test(text) && URL.canParse(text);

/** @param where for messages, such as `"jwt(options)"` */
export function readAcceptOptions(options: AcceptOptions, where: string): AcceptRules {
  const audiences = texts(options.audience);
  if (audiences.length === 0) {
    throw new ConfigError(
      `${where} needs an audience: the address of this server that tokens are issued for, such as "https://orders.example/mcp". ` +
        "Without one, a token for any other server of the same issuer would be accepted here",
      { code: "audience" },
    );
  }
  const issuer: unknown = options.issuer;
  if (Array.isArray(issuer)) {
    const way = where.replace("(options)", "");
    throw new ConfigError(
      `${where} takes one issuer, got ${issuer.length}: with one set of keys, each could sign tokens in the name of the others. ` +
        `Give each its own: anyOf(${way}({ issuer: "https://a.example", … }), ${way}({ issuer: "https://b.example", … }))`,
      { code: "issuer" },
    );
  }
  if (typeof issuer !== "string" || issuer === "") {
    throw new ConfigError(
      `${where} needs an issuer: the authorization server's identifier, as tokens say it in "iss"`,
      { code: "issuer" },
    );
  }
  const { requiredScopes = [], scopesSupported = requiredScopes } = options;
  checkScopes(requiredScopes, `${where}: requiredScopes`);
  checkScopes(scopesSupported, `${where}: scopesSupported`);
  const resource = options.resource ?? audiences.find(isAddress);
  if (resource !== undefined && (!isAddress(resource) || new URL(resource).hash !== "")) {
    throw new ConfigError(
      `${where}: resource must be the address clients use, without a fragment, such as "https://orders.example/mcp"`,
      { code: "resource" },
    );
  }
  return {
    issuer,
    audiences,
    requiredScopes,
    resource,
    scopesSupported,
    clockSkewMs: milliseconds(options.clockSkewMs, SKEW_MS, MAX_SKEW_MS, `${where}: clockSkewMs`, "clock_skew"),
    cacheMs: milliseconds(options.cacheTtlMs, MAX_CACHE_MS, MAX_CACHE_MS, `${where}: cacheTtlMs`, "cache"),
    subjectClaim: options.subjectClaim ?? "sub",
    scopesClaim: options.scopesClaim,
  };
}
