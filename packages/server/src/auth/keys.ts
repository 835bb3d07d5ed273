import { createPublicKey, type KeyObject } from "node:crypto";
import { ConfigError, isRecord } from "@tenon/core";
import { didYouMean } from "@tenon/core/internal";
import type { CryptoKey } from "jose";
import type { ServerLog } from "../log.ts";
import { invalidToken } from "./errors.ts";

/** Signature algorithms a server may take: asymmetric ones only (RFC 7518, RFC 8037, RFC 9864). */
export const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

/** @throws ConfigError `code: "algorithm"` for anything that is not in {@link ALGORITHMS} */
export function checkAlgorithms(given: readonly string[]): readonly Algorithm[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw new ConfigError(`jwt(options): algorithms must be a list of some of ${ALGORITHMS.join(", ")}`, {
      code: "algorithm",
    });
  }
  return given.map((name: string) => {
    const known = ALGORITHMS.find((algorithm) => algorithm === name);
    if (known) return known;
    if (/^HS\d+$/i.test(name)) {
      throw new ConfigError(
        `jwt(options): ${name} is refused: whoever can check such a token can also make one, and a server that knows a public ` +
          `key would take it for the secret. Sign with a private key (${ALGORITHMS[6]} or ${ALGORITHMS[0]}) instead`,
        { code: "algorithm" },
      );
    }
    if (/^none$/i.test(name)) {
      throw new ConfigError('jwt(options): "none" is refused: anybody could write such a token', { code: "algorithm" });
    }
    const near = didYouMean(name, ALGORITHMS);
    const hint = near ? `did you mean "${near}"?` : `known: ${ALGORITHMS.join(", ")}`;
    throw new ConfigError(`jwt(options): unknown algorithm ${JSON.stringify(name)}; ${hint}`, { code: "algorithm" });
  });
}

/** A public key as configuration gives it: PEM (a key or a certificate), or a JWK. */
export type PublicKey = string | Readonly<Record<string, unknown>> | { readonly kty?: string | undefined };

/** A key set (RFC 7517), as `publicJwks` and `tenon keys show` give it. */
export interface KeySet {
  readonly keys: readonly object[];
}

/** The parts of a token's header that choose a key. */
interface KeyChoice {
  readonly alg: string;
  readonly kid: string | undefined;
}

/** Finds the keys a token may have been signed with. Nothing in a token's header is ever fetched or used as a path. */
export type KeySource = (choice: KeyChoice, log: ServerLog) => Promise<readonly (CryptoKey | KeyObject)[]>;

interface FixedKey {
  readonly key: KeyObject;
  readonly kid: string | undefined;
  readonly algorithms: ReadonlySet<string>;
}

const CURVES: Readonly<Record<string, Algorithm>> = { prime256v1: "ES256", secp384r1: "ES384", secp521r1: "ES512" };
const MIN_RSA_BITS = 2_048;
/** Keys one server is given: each may have to be tried for a token that names none. */
const MAX_KEYS = 16;

const refuse = (why: string): ConfigError => new ConfigError(`jwt(options): publicKey ${why}`, { code: "public_key" });

function algorithmsOf(key: KeyObject): readonly string[] {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (type === "rsa") {
    if ((details?.modulusLength ?? 0) >= MIN_RSA_BITS) return ALGORITHMS.slice(0, 6);
    throw refuse(`is an RSA key of ${details?.modulusLength} bits; use at least ${MIN_RSA_BITS}`);
  }
  if (type === "ed25519") return ["EdDSA", "Ed25519"];
  const curve = type === "ec" ? CURVES[details?.namedCurve ?? ""] : undefined;
  if (curve) return [curve];
  throw refuse(`is of type ${type} ${details?.namedCurve ?? ""}; use RSA, P-256, P-384, P-521 or Ed25519`);
}

function fixedKey(given: PublicKey): FixedKey {
  const value: unknown = given;
  const jwk = isRecord(value) ? value : undefined;
  if (jwk?.kty === "oct" || jwk?.k !== undefined) {
    throw refuse("is a shared secret; whoever can check such a token can also make one. Give a public key");
  }
  if (jwk?.d !== undefined || (typeof given === "string" && /PRIVATE KEY/.test(given))) {
    throw refuse("is a private key; a server that only checks tokens must not hold it. Give the public half");
  }
  if (jwk?.use !== undefined && jwk.use !== "sig") throw refuse(`is for ${String(jwk.use)}, not for signatures`);
  let key: KeyObject;
  try {
    // a JWK by its shape; Node checks its members
    key = jwk ? createPublicKey({ key: jwk, format: "jwk" }) : createPublicKey(String(given));
  } catch {
    throw refuse(
      "cannot be read; give PEM text (BEGIN PUBLIC KEY or BEGIN CERTIFICATE), a JWK or a key set as an object. The path of a " +
        "file is not read: give what is in it",
    );
  }
  const possible = algorithmsOf(key);
  const algorithms = typeof jwk?.alg === "string" ? possible.filter((one) => one === jwk.alg) : possible;
  if (algorithms.length === 0) throw refuse(`says alg ${JSON.stringify(jwk?.alg)}, which does not fit its type`);
  return { key, kid: typeof jwk?.kid === "string" ? jwk.kid : undefined, algorithms: new Set(algorithms) };
}

/**
 * Keys that are given and stay. A key without a `kid`, as PEM is, is tried for every token.
 * @throws ConfigError `code: "public_key"`
 */
export function fixedKeys(given: PublicKey | KeySet | readonly PublicKey[]): KeySource {
  const value: unknown = given;
  const set: unknown = isRecord(value) && Array.isArray(value.keys) ? value.keys : value;
  const list: readonly PublicKey[] = Array.isArray(set) ? set : [set]; // each is looked at below
  if (list.length === 0 || list.length > MAX_KEYS) throw refuse(`must be one to ${MAX_KEYS} keys; got ${list.length}`);
  const keys = list.map(fixedKey);
  return async ({ alg, kid }) => {
    const found = keys.filter((one) => one.algorithms.has(alg) && (!kid || !one.kid || one.kid === kid));
    if (found.length === 0) throw invalidToken("unknown_key", "The token was signed with an unknown key");
    return found.map(({ key }) => key);
  };
}
