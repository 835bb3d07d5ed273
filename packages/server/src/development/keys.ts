import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { ConfigError, codeOf, messageOf } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { calculateJwkThumbprint } from "jose";

/** What development keys may sign with: asymmetric only, so that whoever can check a token cannot make one. */
export const SIGNING_ALGORITHMS = ["ES256", "RS256", "EdDSA"] as const;
/** An algorithm that development keys sign with. */
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

/** A public key as JWK (RFC 7517), with what a verifier needs to choose it. */
export interface PublicJwk {
  readonly kty: string;
  readonly kid: string;
  readonly alg: SigningAlgorithm;
  readonly use: "sig";
  readonly crv?: string;
  readonly x?: string;
  readonly y?: string;
  readonly n?: string;
  readonly e?: string;
}

/** A key pair that signs tokens. Printing one, or turning it into JSON, does not show the private half. */
export interface SigningKey {
  readonly algorithm: SigningAlgorithm;
  /** Identifies the key in a token's header and in a key set: the thumbprint of the public key (RFC 7638). */
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicJwk: PublicJwk;
}

/** Where a saved key lies. */
export interface SigningKeyFiles {
  /** PKCS#8 in PEM, mode 0600. */
  readonly privateKey: string;
  /** SPKI in PEM. */
  readonly publicKey: string;
  /** A JSON Web Key Set with the public key. */
  readonly jwks: string;
}

/** The usual name of a key's file in a data directory. */
export const SIGNING_KEY_FILE = "signing-key.pem";

const MAX_KEY_FILE_BYTES = 64 * 1024;
const MIN_RSA_BITS = 2048;
const WANTED = "give the path of a PKCS#8 private key without a passphrase";
/** Bits of a mode that let a group or everyone read, write or execute. */
const OTHERS = 0o077;
const generate = promisify(generateKeyPair);

/** Both halves of the message are in `data` too: a command line shows them on lines of their own. */
const keyError = (code: string, problem: string, fix: string, cause?: unknown): ConfigError =>
  new ConfigError(`${problem}; ${fix}`, { code, data: { problem, fix }, ...(cause !== undefined && { cause }) });

/** The error for a key that cannot be kept in a file. */
export const unwritable = (path: string, cause: unknown): ConfigError =>
  keyError(
    "signing_key_unwritable",
    `The key cannot be written to ${path} (${messageOf(cause)})`,
    "choose another place",
    cause,
  );

async function signingKey(privateKey: KeyObject, algorithm: SigningAlgorithm): Promise<SigningKey> {
  const jwk = createPublicKey(privateKey).export({ format: "jwk" });
  const kid = await calculateJwkThumbprint(jwk);
  // an exported public key has its `kty`; the type of Node's JWK makes every member optional
  return { algorithm, kid, privateKey, publicJwk: { ...jwk, kid, alg: algorithm, use: "sig" } as PublicJwk };
}

/**
 * Makes a key pair for signing development tokens.
 * @param options.algorithm `ES256` (default), `RS256` (2048 bits) or `EdDSA` (Ed25519)
 * @throws ConfigError `code: "signing_algorithm"` for anything else; HMAC has no key pair and is never offered
 * @example const key = await createSigningKey();
 */
export async function createSigningKey(options: { algorithm?: SigningAlgorithm } = {}): Promise<SigningKey> {
  checkOptions(options, ["algorithm"], "createSigningKey(options)");
  const { algorithm = "ES256" } = options;
  switch (algorithm) {
    case "ES256":
      return signingKey((await generate("ec", { namedCurve: "P-256" })).privateKey, algorithm);
    case "RS256":
      return signingKey((await generate("rsa", { modulusLength: MIN_RSA_BITS })).privateKey, algorithm);
    case "EdDSA":
      return signingKey((await generate("ed25519")).privateKey, algorithm);
    default:
      throw keyError(
        "signing_algorithm",
        `A signing key cannot use ${JSON.stringify(algorithm)}`,
        `choose one of ${SIGNING_ALGORITHMS.join(", ")}`,
      );
  }
}

/** What a key can sign with follows from its kind. */
function algorithmOf(privateKey: KeyObject, path: string): SigningAlgorithm {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = privateKey;
  if (type === "ec" && details?.namedCurve === "prime256v1") return "ES256";
  if (type === "ed25519") return "EdDSA";
  if (type === "rsa" && (details?.modulusLength ?? 0) >= MIN_RSA_BITS) return "RS256";
  const given = details?.namedCurve ?? (details?.modulusLength ? `${details.modulusLength} bits` : "");
  throw keyError(
    "signing_key",
    `The key in ${path} (${[type, given].filter(Boolean).join(", ")}) cannot sign tokens here`,
    `take an EC key on P-256, an RSA key of at least ${MIN_RSA_BITS} bits, or an Ed25519 key`,
  );
}

/** The files of a key by the path of its private half. */
export function signingKeyFiles(path: string): SigningKeyFiles {
  const stem = path.replace(/\.pem$/, "");
  return { privateKey: path, publicKey: `${stem}.public.pem`, jwks: `${stem}.jwks.json` };
}

/**
 * Writes a key pair: the private half for its owner only (0600, its directory 0700 when it is made here), the public half and
 * the key set beside it. Never overwrites: tokens of the old key would be refused everywhere at once.
 * @param path of the private half, for example `.tenon/signing-key.pem`
 * @throws ConfigError `code: "signing_key_exists"` when one of the files is there, `"signing_key_unwritable"`
 */
export function saveSigningKey(key: SigningKey, path: string): SigningKeyFiles {
  const files = signingKeyFiles(path);
  const exists = (file: string): ConfigError =>
    keyError("signing_key_exists", `${file} exists and is not overwritten`, "delete it first, or choose another place");
  const taken = Object.values(files).find((file) => existsSync(file));
  if (taken) throw exists(taken);
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const pem = key.privateKey.export({ type: "pkcs8", format: "pem" });
    writeFileSync(files.privateKey, pem, { mode: 0o600, flag: "wx" });
    writeFileSync(files.publicKey, publicPem(key), { mode: 0o644, flag: "wx" });
    writeFileSync(files.jwks, `${JSON.stringify(publicJwks(key), undefined, 2)}\n`, { mode: 0o644, flag: "wx" });
  } catch (cause) {
    // another process was quicker
    if (codeOf(cause) === "EEXIST") throw exists(path);
    throw unwritable(path, cause);
  }
  return files;
}

/** The file's text, once its size and its mode are in order. Looks at the open file, not at the path: it may be swapped. */
function readPrivate(path: string): string {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") {
      throw keyError(
        "signing_key_missing",
        `There is no signing key at ${path}`,
        "make one with: tenon keys new",
        cause,
      );
    }
    throw keyError("signing_key", `The signing key ${path} cannot be read`, "check its path and its owner", cause);
  }
  try {
    const { mode, size } = fstatSync(file);
    // Windows reports modes it does not have
    if (process.platform !== "win32" && (mode & OTHERS) !== 0) {
      const octal = (mode & 0o777).toString(8).padStart(4, "0");
      throw keyError(
        "signing_key_exposed",
        `The private key ${path} has mode ${octal}: other users of this machine may use it`,
        `make it yours alone with: chmod 600 ${path}`,
      );
    }
    if (size > MAX_KEY_FILE_BYTES) {
      throw keyError("signing_key", `${path} has ${size} bytes, more than a key`, WANTED);
    }
    return readFileSync(file, "utf8");
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw keyError("signing_key", `The signing key ${path} cannot be read: it is no plain file`, WANTED, cause);
  } finally {
    closeSync(file);
  }
}

/**
 * Reads a private key in PEM: one that `saveSigningKey` wrote, or an EC (P-256), RSA or Ed25519 key made elsewhere.
 * @throws ConfigError `code: "signing_key_missing"`, `"signing_key_exposed"` when others may read the file, `"signing_key"`
 * when it holds no such key
 */
export async function loadSigningKey(path: string): Promise<SigningKey> {
  const text = readPrivate(path);
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(text);
  } catch (cause) {
    // the parser's own message is not passed on: it is of no help, and what it was given is a secret
    const why = /ENCRYPTED/.test(text) ? "is encrypted" : "holds no private key in PEM";
    throw keyError("signing_key", `${path} ${why}`, WANTED, cause);
  }
  return signingKey(privateKey, algorithmOf(privateKey, path));
}

/**
 * The key set that verifiers read (RFC 7517): public halves only.
 * @example await writeFile("jwks.json", JSON.stringify(publicJwks(key)));
 */
export function publicJwks(...keys: readonly SigningKey[]): { keys: PublicJwk[] } {
  return { keys: keys.map(({ publicJwk }) => publicJwk) };
}

/** The public half as SPKI in PEM, for verifiers that take one key. */
export function publicPem(key: SigningKey): string {
  return String(createPublicKey(key.privateKey).export({ type: "spki", format: "pem" }));
}
