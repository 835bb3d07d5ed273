import { createHmac, sign, timingSafeEqual, verify } from "node:crypto";
import { ConfigError, ContractError } from "../errors.ts";
import { canonicalJson, JsonError } from "../json.ts";
import type { ContractDeclaration, ContractSignature } from "./declaration.ts";
import { type ContractKey, type OpenKey, openKeys } from "./keys.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** How long a key is in use where nothing else is said. */
const ROTATION_MS = 30 * DAY_MS;
/** How far clocks of two machines may be apart. */
const SKEW_MS = 5 * 60_000;

/** What a signature covers, as the bytes that are signed: canonical JSON (RFC 8785) in UTF-8. */
export function signedBytes(declaration: ContractDeclaration): Buffer {
  const { server_id, version, capabilities, context_schema, authentication, next_rotation_time } = declaration;
  return Buffer.from(
    canonicalJson({ server_id, version, capabilities, context_schema, authentication, next_rotation_time }),
  );
}

/** The same of a declaration that came over the wire: of one without a canonical form nobody can have signed anything. */
function bytesOf(declaration: ContractDeclaration): Buffer | undefined {
  try {
    return signedBytes(declaration);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

function signatureOf(key: OpenKey, bytes: Buffer): Buffer {
  if (key.secret) return createHmac("sha256", key.secret).update(bytes).digest();
  if (key.privateKey) return sign(null, bytes, key.privateKey);
  throw new ConfigError(`Contract keys: "${key.kid}" is a public key; who signs needs the private one`, {
    code: "contract_keys",
  });
}

function fits(key: OpenKey, bytes: Buffer, value: Buffer): boolean {
  if (key.secret) {
    const wanted = signatureOf(key, bytes);
    return wanted.length === value.length && timingSafeEqual(wanted, value);
  }
  return key.publicKey !== undefined && verify(null, bytes, key.publicKey, value);
}

/** Why a declaration is not believed. */
export type SignatureFault = "unsigned" | "unknown_key" | "wrong_algorithm" | "invalid" | "expired";

const FAULTS: Readonly<Record<SignatureFault, string>> = {
  unsigned: "it has no signature, and this client has keys for it",
  unknown_key: "none of the keys here is the one it names; give the client the server's present and next key",
  wrong_algorithm: "it names a key here with another algorithm",
  invalid: "it was changed on the way, or signed with another key",
  expired: "its next_rotation_time is over; ask the server again, and look at its clock",
};

/** The live keys of one side. */
export interface KeyRing {
  /** The declaration with the signature of the key in use at `now`, and when the next one is. @throws ConfigError for a public key */
  sign(declaration: Omit<ContractDeclaration, "signature" | "next_rotation_time">, now?: number): ContractDeclaration;
  /** What is wrong with a declaration's signature; undefined when it is right. Compares in constant time. */
  faultOf(declaration: ContractDeclaration, now?: number): SignatureFault | undefined;
  /** Milliseconds since 1970 at which another key than the one at `now` is in use. */
  nextRotation(now?: number): number;
  /** HMAC-SHA-256 with the shared secret in use at `now`; undefined where the key in use is an Ed25519 key. */
  mac(bytes: Buffer, now?: number): Buffer | undefined;
}

/**
 * Puts one or two keys together.
 * @param began milliseconds since 1970: from when on a key without `activeFrom` counts as in use. Default: now
 * @param minSecretBytes what a shared secret must have. Default 32; less only for a plain secret of older peers
 * @throws ConfigError `code: "contract_keys"`
 */
export function createKeyRing(keys: readonly ContractKey[], began = Date.now(), minSecretBytes?: number): KeyRing {
  const open = openKeys(keys, minSecretBytes);
  const activeAt = (now: number): OpenKey => {
    const active = open.filter(({ activeFrom }) => (activeFrom ?? 0) <= now);
    const [newest] = active.toSorted((a, b) => (b.activeFrom ?? 0) - (a.activeFrom ?? 0));
    if (newest) return newest;
    throw new ConfigError("Contract keys: none is active yet; leave activeFrom out of the one in use", {
      code: "contract_keys",
    });
  };
  const nextRotation = (now = Date.now()): number => {
    const coming = open.flatMap(({ activeFrom }) => (activeFrom !== undefined && activeFrom > now ? [activeFrom] : []));
    if (coming.length > 0) return Math.min(...coming);
    const since = activeAt(now).activeFrom ?? began;
    return since + Math.max(1, Math.floor((now - since) / ROTATION_MS) + 1) * ROTATION_MS;
  };
  return {
    nextRotation,
    mac(bytes, now = Date.now()) {
      const { secret } = activeAt(now);
      return secret && createHmac("sha256", secret).update(bytes).digest();
    },
    sign(declaration, now = Date.now()) {
      const key = activeAt(now);
      const next_rotation_time = new Date(nextRotation(now)).toISOString();
      const whole = { ...declaration, next_rotation_time };
      const value = signatureOf(key, signedBytes(whole)).toString("base64url");
      const signature: ContractSignature = { alg: key.alg, kid: key.kid, value };
      return { ...whole, signature };
    },
    faultOf(declaration, now = Date.now()) {
      const { signature, next_rotation_time } = declaration;
      if (!signature) return "unsigned";
      const key = open.find(({ kid }) => kid === signature.kid);
      if (!key) return "unknown_key";
      if (key.alg !== signature.alg) return "wrong_algorithm";
      const bytes = bytesOf(declaration);
      if (!bytes || !fits(key, bytes, Buffer.from(signature.value, "base64url"))) return "invalid";
      // signed without a time, it would count for ever
      const until = next_rotation_time === undefined ? Number.NEGATIVE_INFINITY : Date.parse(next_rotation_time);
      return until + SKEW_MS < now ? "expired" : undefined;
    },
  };
}

/**
 * Refuses a declaration whose signature is not right.
 * @throws ContractError `code: "signature"`, with `data.reason`
 */
export function verifyDeclaration(declaration: ContractDeclaration, ring: KeyRing, now = Date.now()): void {
  const reason = ring.faultOf(declaration, now);
  if (reason === undefined) return;
  throw new ContractError(`The contract of "${declaration.server_id}" is not believed: ${FAULTS[reason]}`, {
    code: "signature",
    maybeExecuted: false,
    data: { reason, server_id: declaration.server_id, kid: declaration.signature?.kid },
  });
}
