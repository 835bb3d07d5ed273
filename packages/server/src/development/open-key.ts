import { randomUUID } from "node:crypto";
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError, codeOf } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import {
  createSigningKey,
  loadSigningKey,
  publicJwks,
  publicPem,
  type SigningAlgorithm,
  type SigningKey,
  signingKeyFiles,
  unwritable,
} from "./keys.ts";

/** Puts a new private key into its place, whole or not at all; the key that another process put there meanwhile stays. */
function place(key: SigningKey, path: string): void {
  const temporary = `${path}.${randomUUID()}.tmp`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    writeFileSync(temporary, key.privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600, flag: "wx" });
    linkSync(temporary, path); // unlike a renamed file, a link never replaces what is there
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Writes a public file, unless it holds this key already: it may hold others as well. @param mark what the key is known by */
function publish(path: string, text: string, mark: string): void {
  if (existsSync(path) && readFileSync(path, "utf8").includes(mark)) return;
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    writeFileSync(temporary, text, { mode: 0o644, flag: "wx" });
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/**
 * The signing key in a file, made at the first use: however many processes begin at the same moment, all get the same key. Its
 * public half and its key set lie beside it (`signingKeyFiles`), for those who only check tokens.
 * @param path of the private half, for example `.tenon/signing-key.pem`
 * @param options.algorithm of a key that is made; default `ES256`
 * @throws ConfigError `code: "signing_key_exposed"`, `"signing_key"` as `loadSigningKey` does, `"signing_key_unwritable"`
 * @example const key = await openSigningKey(join(dataDirectory, SIGNING_KEY_FILE));
 */
export async function openSigningKey(
  path: string,
  options: { algorithm?: SigningAlgorithm } = {},
): Promise<SigningKey> {
  checkOptions(options, ["algorithm"], "openSigningKey(path, options)");
  const files = signingKeyFiles(path);
  const made = existsSync(path) ? undefined : await createSigningKey(options);
  try {
    if (made) place(made, path);
    const key = await loadSigningKey(path);
    publish(files.publicKey, publicPem(key), publicPem(key).trim());
    publish(files.jwks, `${JSON.stringify(publicJwks(key), undefined, 2)}\n`, key.kid);
    return key;
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw unwritable(path, cause);
  }
}
