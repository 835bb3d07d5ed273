import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, isRecord, messageOf } from "@tenon/core";
import { openStateKeys } from "@tenon/server";
import { jwt, type PublicKey, type TokenVerifier } from "@tenon/server/auth";
import { openSigningKey, SIGNING_KEY_FILE, signingKeyFiles } from "@tenon/server/development";
import type { Place } from "../database/place.ts";
import { AUDIENCES, ISSUER, SCOPES } from "./access.ts";
import type { ServerName } from "./names.ts";

const MAX_KEY_SET_BYTES = 512 * 1024;

/** Whose tokens a server takes instead of the desk's own. */
export interface OtherIssuer {
  issuer?: string | undefined;
  /** An address, or the path of a file. */
  jwks?: string | undefined;
  audience?: string | undefined;
}

/** Keys that seal open questions: `TENON_STATE_KEYS`, newest first, else those of the data directory. Replicas need the same. */
export function stateKeysOf({ directory }: Place): string[] {
  const given = process.env.TENON_STATE_KEYS?.split(",").filter((key) => key !== "") ?? [];
  return given.length > 0 ? given : openStateKeys(join(directory, "state-keys"));
}

/** The file of the desk's signing key: only the desk reads it. */
export const signingKeyPath = (dataDirectory: string): string => join(dataDirectory, SIGNING_KEY_FILE);

/** @throws ConfigError `code: "jwks"` when the file holds no key set (RFC 7517) */
function readKeySet(path: string): readonly PublicKey[] {
  try {
    if (statSync(path).size > MAX_KEY_SET_BYTES) throw new Error("it is too large");
    const set: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (isRecord(set) && Array.isArray(set.keys) && set.keys.every(isRecord)) return set.keys;
    throw new Error("it has no list of keys");
  } catch (cause) {
    throw new ConfigError(
      `${path} is no key set: ${messageOf(cause)}. Give a file or an address with {"keys":[…]} (RFC 7517)`,
      { code: "jwks", cause },
    );
  }
}

/** The desk's public keys; the server makes the pair when it is the first to start. */
async function ownKeys(dataDirectory: string): Promise<readonly PublicKey[]> {
  const path = signingKeyPath(dataDirectory);
  const { jwks } = signingKeyFiles(path);
  if (!existsSync(jwks)) await openSigningKey(path);
  return readKeySet(jwks);
}

/**
 * Which tokens a server takes: those of the desk on the same data directory, or of another issuer.
 * @throws ConfigError `code: "issuer"` when only a part of another issuer was named
 */
export async function trustOf(
  name: ServerName,
  dataDirectory: string,
  { issuer, jwks, audience = AUDIENCES[name] }: OtherIssuer = {},
): Promise<TokenVerifier> {
  if ((issuer === undefined) !== (jwks === undefined)) {
    throw new ConfigError("Another issuer needs both --issuer, as its tokens say it, and --jwks with its public keys", {
      code: "issuer",
    });
  }
  const accept = { issuer: issuer ?? ISSUER, audience, scopesSupported: SCOPES[name] };
  if (jwks !== undefined && /^https?:/i.test(jwks)) return jwt({ ...accept, jwksUrl: jwks });
  return jwt({ ...accept, publicKey: jwks === undefined ? await ownKeys(dataDirectory) : readKeySet(jwks) });
}
