import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { ConfigError } from "../errors.ts";
import { isRecord } from "../json.ts";
import type { SignatureAlgorithm } from "./declaration.ts";

/** One key of a contract. Two are live at any time: the one in use, and the one before or after it. */
export type ContractKey = {
  /** Names the key: 1 to 64 of `A-Z a-z 0-9 . _ -`. */
  readonly kid: string;
  /** ISO 8601: from when on it signs; left out, it is in use already. */
  readonly activeFrom?: string;
} & (
  | {
      readonly alg: "HS256";
      /** At least 32 bytes as base64url, the same on both sides. */
      readonly secret: string;
    }
  | {
      readonly alg: "EdDSA";
      /** The 32 bytes of an Ed25519 private key as base64url: who signs. */
      readonly privateKey: string;
    }
  | {
      readonly alg: "EdDSA";
      /** The 32 bytes of an Ed25519 public key as base64url: who only checks. */
      readonly publicKey: string;
    }
);

/** A key ready for use. */
export interface OpenKey {
  readonly kid: string;
  readonly alg: SignatureAlgorithm;
  /** Milliseconds since 1970. */
  readonly activeFrom: number | undefined;
  readonly secret?: Buffer;
  readonly privateKey?: KeyObject;
  readonly publicKey?: KeyObject;
}

export const MAX_LIVE_KEYS = 2;
const KID = /^[\w.-]{1,64}$/;
const BASE64URL = /^[\w-]+$/;
const MIN_SECRET_BYTES = 32;
const ED25519_BYTES = 32;
// the fixed beginnings of the two DER forms of Ed25519 keys (RFC 8410)
const PRIVATE_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
const PUBLIC_PREFIX = Buffer.from("302a300506032b6570032100", "hex");

const FORM =
  "kid:HS256:<secret>, kid:EdDSA:<private key> or kid:EdDSA.public:<public key>, base64url, each with @<ISO 8601> where it is " +
  "active later, separated by commas";

function refuse(why: string): never {
  // never what was given: it is a key
  throw new ConfigError(`Contract keys: ${why}. Expected: ${FORM}`, { code: "contract_keys" });
}

function bytesOf(text: unknown, what: string, kid: string): Buffer {
  if (typeof text !== "string" || !BASE64URL.test(text)) return refuse(`the ${what} of "${kid}" is not base64url`);
  return Buffer.from(text, "base64url");
}

function ed25519(text: unknown, what: string, kid: string): Buffer {
  const bytes = bytesOf(text, what, kid);
  if (bytes.length !== ED25519_BYTES) refuse(`the ${what} of "${kid}" has ${bytes.length} bytes instead of 32`);
  return bytes;
}

function openKey(key: ContractKey, minSecretBytes: number): OpenKey {
  if (!isRecord(key) || typeof key.kid !== "string" || !KID.test(key.kid)) {
    return refuse('a key needs a kid of 1 to 64 letters, digits, ".", "_" or "-"');
  }
  const { kid, alg, activeFrom: from } = key;
  const activeFrom = from === undefined ? undefined : Date.parse(String(from));
  if (Number.isNaN(activeFrom)) refuse(`activeFrom of "${kid}" is no time as ISO 8601`);
  if (alg === "HS256") {
    const secret = bytesOf(key.secret, "secret", kid);
    if (secret.length < minSecretBytes) {
      refuse(`the secret of "${kid}" has ${secret.length} bytes; ${minSecretBytes} are the least`);
    }
    return { kid, alg, activeFrom, secret };
  }
  if (alg !== "EdDSA") return refuse(`the alg of "${kid}" is neither HS256 nor EdDSA`);
  if ("privateKey" in key) {
    const der = Buffer.concat([PRIVATE_PREFIX, ed25519(key.privateKey, "private key", kid)]);
    const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
    return { kid, alg, activeFrom, privateKey, publicKey: createPublicKey(privateKey) };
  }
  const der = Buffer.concat([PUBLIC_PREFIX, ed25519(key.publicKey, "public key", kid)]);
  return { kid, alg, activeFrom, publicKey: createPublicKey({ key: der, format: "der", type: "spki" }) };
}

/**
 * Makes the one or two live keys ready.
 * @param minSecretBytes what a shared secret must have; less only for one that older peers have as a plain text
 * @throws ConfigError `code: "contract_keys"`; no message has a part of a key
 */
export function openKeys(keys: readonly ContractKey[], minSecretBytes = MIN_SECRET_BYTES): readonly OpenKey[] {
  if (!Array.isArray(keys) || keys.length === 0) return refuse("there is none");
  if (keys.length > MAX_LIVE_KEYS) {
    refuse(`there are ${keys.length}; two are live at a time, so take out the one that is used up`);
  }
  const open = keys.map((key) => openKey(key, minSecretBytes));
  if (new Set(open.map(({ kid }) => kid)).size < open.length) refuse("both have the same kid");
  return open;
}

function readKey(text: string): ContractKey {
  const [body = "", activeFrom, ...more] = text.split("@");
  const [kid = "", alg, value = "", ...rest] = body.split(":");
  if (more.length > 0 || rest.length > 0) refuse("a key has too many parts");
  const base = { kid, ...(activeFrom !== undefined && { activeFrom }) };
  if (alg === "HS256") return { ...base, alg, secret: value };
  if (alg === "EdDSA") return { ...base, alg, privateKey: value };
  if (alg === "EdDSA.public") return { ...base, alg: "EdDSA", publicKey: value };
  return refuse("a key has an unknown algorithm");
}

/**
 * Reads keys as one line of text, as `TENON_CONTRACT_KEYS` has them.
 * @throws ConfigError `code: "contract_keys"`
 * @example readContractKeys("2026-11:HS256:q80…,2026-12:HS256:Zm9…@2026-12-01T00:00:00Z")
 */
export function readContractKeys(text: string): readonly ContractKey[] {
  const keys = text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean)
    .map(readKey);
  openKeys(keys);
  return keys;
}

/** The same as one line of text. */
export function writeContractKeys(keys: readonly ContractKey[]): string {
  const line = (key: ContractKey): string => {
    const value =
      key.alg === "HS256"
        ? `HS256:${key.secret}`
        : "privateKey" in key
          ? `EdDSA:${key.privateKey}`
          : `EdDSA.public:${key.publicKey}`;
    return `${key.kid}:${value}${key.activeFrom === undefined ? "" : `@${key.activeFrom}`}`;
  };
  return keys.map(line).join(",");
}

/**
 * The key that a plain shared secret stands for, as older peers have one in `MCP_SERVER_SECRET`: HS256 with the UTF-8 of the text,
 * `kid` `"default"`. Of any length: give `createKeyRing` the length to accept where it has less than 32 bytes.
 * @throws ConfigError `code: "contract_keys"` for an empty text
 */
export function plainSecretKey(secret: string): ContractKey {
  if (secret === "") refuse("the plain secret is empty");
  return { kid: "default", alg: "HS256", secret: Buffer.from(secret).toString("base64url") };
}

/** The half of an Ed25519 key that clients get; a shared secret is what both have. */
export function publicContractKey(key: ContractKey): ContractKey {
  if (key.alg === "HS256" || "publicKey" in key) return key;
  const { kid, alg, activeFrom } = key;
  const [open] = openKeys([key]);
  const der = open?.publicKey?.export({ format: "der", type: "spki" }) ?? Buffer.alloc(0);
  const publicKey = der.subarray(PUBLIC_PREFIX.length).toString("base64url");
  return { kid, alg, publicKey, ...(activeFrom !== undefined && { activeFrom }) };
}

/** A new key from the system's random source. */
export function newContractKey(options: {
  readonly kid: string;
  readonly alg: SignatureAlgorithm;
  readonly activeFrom?: string;
}): ContractKey {
  const { alg, ...base } = options;
  if (alg === "HS256") return { ...base, alg, secret: randomBytes(MIN_SECRET_BYTES).toString("base64url") };
  const { privateKey } = generateKeyPairSync("ed25519");
  const der = privateKey.export({ format: "der", type: "pkcs8" });
  return { ...base, alg, privateKey: der.subarray(PRIVATE_PREFIX.length).toString("base64url") };
}
