import { createHmac } from "node:crypto";
import { ConfigError, type JsonObject } from "@tenon/core";
import { type ContractKey, createKeyRing, type KeyRing, plainSecretKey, readContractKeys } from "@tenon/core/contract";
import { canonicalJson } from "@tenon/core/internal";
import type { ServerLog } from "../log.ts";

/** Bytes below which a plain secret can be guessed. */
const MIN_SECRET_BYTES = 32;

/** The keys of a server's contract. */
export interface ContractKeys {
  /** Undefined: what the server announces is not signed. */
  readonly ring: KeyRing | undefined;
  /** The signature older peers read, over what they read; undefined where there is no shared secret. */
  plainSignature(over: JsonObject): string | undefined;
}

/** A server that cannot sign with its next key would find out in the middle of the night. */
function refusePublic(keys: readonly ContractKey[]): void {
  const key = keys.find((one) => "publicKey" in one);
  if (!key) return;
  throw new ConfigError(
    `Contract keys: "${key.kid}" is a public key, which is for clients; a server needs the private one`,
    {
      code: "contract_keys",
    },
  );
}

/** Says where keys that are none stand: whoever reads that may have set a variable, or none at all. */
function from<T>(place: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(`${place}: ${error.message}`, { code: error.code, cause: error });
  }
}

/** @throws ConfigError `code: "contract_keys"` */
export function openContractKeys(
  given: readonly ContractKey[] | string | undefined,
  environment: NodeJS.ProcessEnv,
  log: ServerLog,
): ContractKeys {
  const listed = given ?? (environment.TENON_CONTRACT_KEYS || undefined);
  const plain = environment.MCP_SERVER_SECRET || undefined;
  if (plain !== undefined && Buffer.byteLength(plain) < MIN_SECRET_BYTES) {
    log("warning", `MCP_SERVER_SECRET has less than ${MIN_SECRET_BYTES} bytes: who sees one signature can guess it`);
  }
  const place = given === undefined ? "TENON_CONTRACT_KEYS" : "createServer({ contract }).keys";
  const listedRing = from(place, () => {
    const keys = typeof listed === "string" ? readContractKeys(listed) : listed;
    if (!keys) return undefined;
    refusePublic(keys);
    const own = createKeyRing(keys);
    own.mac(Buffer.alloc(0)); // throws now, not in front of a client, when none is active yet
    return own;
  });
  const ring = listedRing ?? (plain === undefined ? undefined : createKeyRing([plainSecretKey(plain)], Date.now(), 1));
  return {
    ring,
    plainSignature(over) {
      const bytes = Buffer.from(canonicalJson(over));
      const mac = plain === undefined ? ring?.mac(bytes) : createHmac("sha256", plain).update(bytes).digest();
      return mac && `sha256-hmac:${mac.toString("hex")}`;
    },
  };
}
