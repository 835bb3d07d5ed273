import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { ServerLog } from "../log.ts";
import { readClaims } from "./claims.ts";
import { invalidToken } from "./errors.ts";
import { KEY_SET_TIMES, publishedKeys } from "./jwks.ts";
import {
  ALGORITHMS,
  type Algorithm,
  checkAlgorithms,
  fixedKeys,
  type KeySet,
  type KeySource,
  type PublicKey,
} from "./keys.ts";
import { ACCEPT_OPTIONS, type AcceptOptions, checkAddress, readAcceptOptions } from "./options.ts";
import type { TokenVerifier } from "./types.ts";

/** Which signed tokens a server takes. */
export interface JwtOptions extends AcceptOptions {
  /** Where the issuer publishes its keys (RFC 7517): https, or http on this machine. Either this or `publicKey`. */
  jwksUrl?: string | URL;
  /** The issuer's public key, or several while it changes: PEM text, JWK objects, or a key set (`{ keys }`). */
  publicKey?: PublicKey | KeySet | readonly PublicKey[];
  /** Signature algorithms that are taken. Default: all of RS, PS and ES with 256 to 512 bits, and EdDSA. Never HMAC, never `none`. */
  algorithms?: readonly Algorithm[];
  /** Milliseconds after which published keys are read again. Default 600,000. */
  keysFreshMs?: number;
  /** Milliseconds the last keys serve on while the issuer cannot be reached. Default a day. */
  keysStaleMs?: number;
}

const OPTIONS = [
  ...ACCEPT_OPTIONS,
  "jwksUrl",
  "publicKey",
  "algorithms",
  "keysFreshMs",
  "keysStaleMs",
] as const satisfies ReadonlyArray<keyof JwtOptions>;

/** Types of tokens that may open a server: access tokens as RFC 9068 names them, and those that do not say. */
const TYPES: ReadonlySet<unknown> = new Set([undefined, "jwt", "at+jwt", "application/at+jwt", "application/jwt"]);

interface Header {
  readonly alg: string;
  readonly kid: string | undefined;
}

/** Reads what a stranger wrote in front of a token. Of all it may say, only the algorithm and the key's name are looked at. */
function readHeader(token: string, algorithms: readonly string[]): Header {
  const [first = "", , , ...more] = token.split(".");
  if (token.split(".").length !== 3 || more.length > 0) throw invalidToken("malformed", "The token is no signed JWT");
  let header: unknown;
  try {
    header = JSON.parse(Buffer.from(first, "base64url").toString());
  } catch {
    throw invalidToken("malformed", "The token is no signed JWT");
  }
  if (!isRecord(header)) throw invalidToken("malformed", "The token is no signed JWT");
  const { alg, kid, typ, crit } = header;
  if (!algorithms.some((known) => known === alg)) {
    throw invalidToken("algorithm", `The token's algorithm is not one of ${algorithms.join(", ")}`);
  }
  if (!TYPES.has(typeof typ === "string" ? typ.toLowerCase() : typ)) {
    throw invalidToken("type", "The token is no access token");
  }
  // extensions that must be understood (RFC 7515, section 4.1.11): none is
  if (crit !== undefined) throw invalidToken("type", "The token needs extensions that this server does not know");
  if (kid !== undefined && typeof kid !== "string") throw invalidToken("malformed", "The token's kid is no text");
  return { alg: alg as string, kid }; // one of the algorithms
}

async function verified(
  token: string,
  { alg, kid }: Header,
  keys: KeySource,
  log: ServerLog,
): Promise<Record<string, unknown>> {
  const { compactVerify, errors } = await import("jose"); // only a server that checks a token pays for loading it
  for (const key of await keys({ alg, kid }, log)) {
    try {
      const { payload } = await compactVerify(token, key, { algorithms: [alg] });
      const claims: unknown = JSON.parse(new TextDecoder().decode(payload));
      if (isRecord(claims)) return claims;
      throw invalidToken("malformed", "The token holds no claims");
    } catch (error) {
      if (error instanceof errors.JWSSignatureVerificationFailed) continue; // perhaps another key of the same name
      if (error instanceof SyntaxError || error instanceof errors.JOSEError || error instanceof TypeError) {
        throw invalidToken("malformed", "The token cannot be read");
      }
      throw error;
    }
  }
  throw invalidToken("signature", "The token's signature is wrong");
}

function milliseconds(given: number | undefined, fallback: number, where: string): number {
  if (given === undefined) return fallback;
  if (Number.isFinite(given) && given > 0) return given;
  throw new ConfigError(`jwt(options): ${where} is ${given}; expected milliseconds above 0`, { code: "keys" });
}

/**
 * Takes signed tokens (JWT, RFC 7519 and RFC 9068) of an issuer: signature, issuer, audience, expiry and time are checked, with
 * keys from the issuer's key set or given here.
 *
 * @throws ConfigError without an audience or an issuer, for HMAC algorithms, private or weak keys, an address that is not https
 * @example
 * createServer({ …, auth: jwt({
 *   issuer: "https://login.example", audience: "https://orders.example/mcp",
 *   jwksUrl: "https://login.example/.well-known/jwks.json", requiredScopes: ["orders:read"],
 * }) })
 */
export function jwt(options: JwtOptions): TokenVerifier {
  checkOptions(options, OPTIONS, "jwt(options)");
  const rules = readAcceptOptions(options, "jwt(options)");
  const algorithms = checkAlgorithms(options.algorithms ?? ALGORITHMS);
  const { jwksUrl, publicKey } = options;
  if ((jwksUrl === undefined) === (publicKey === undefined)) {
    throw new ConfigError("jwt(options) needs the issuer's keys: either jwksUrl or publicKey", { code: "public_key" });
  }
  const times = {
    ...KEY_SET_TIMES,
    freshMs: milliseconds(options.keysFreshMs, KEY_SET_TIMES.freshMs, "keysFreshMs"),
    staleMs: milliseconds(options.keysStaleMs, KEY_SET_TIMES.staleMs, "keysStaleMs"),
  };
  const keys =
    publicKey === undefined
      ? publishedKeys(checkAddress(jwksUrl ?? "", "jwt(options): jwksUrl", "jwks_url"), times)
      : fixedKeys(publicKey);
  const { issuer, resource, requiredScopes, scopesSupported } = rules;
  return {
    issuers: [issuer],
    resource,
    requiredScopes,
    scopesSupported,
    async verify(token, log) {
      const claims = await verified(token, readHeader(token, algorithms), keys, log);
      return readClaims(claims, rules, { required: ["iss", "exp"] });
    },
  };
}
