import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { isRecord, messageOf, TenonError } from "@tenon/core";
import { didYouMean, shownValue } from "@tenon/core/internal";
import { checkKey, configError, type KeyPath } from "@tenon/core/internal/document";
import { type Auth, bearer, clientCredentials, fileTokenStore, oauth, workloadIdentity } from "../auth/index.ts";
import type { EntryContext } from "./servers.ts";

/** Files with tokens and keys may have this many bytes. */
const MAX_FILE = 64 * 1024;
const COMMON = ["type", "scopes", "issuer", "dpop", "allowPrivateNetwork", "store"];

/** What `auth` of an entry may say, by its type. */
const AUTH_KEYS: Readonly<Record<string, readonly string[]>> = {
  bearer: ["type", "token"],
  clientCredentials: [...COMMON, "clientId", "clientSecret", "privateKey", "privateKeyFile", "algorithm"],
  oauth: [...COMMON, "clientId", "clientSecret", "clientMetadataUrl", "clientName", "redirectUrl", "timeoutMs"],
  workloadIdentity: [...COMMON, "tokenFile", "clientId"],
};

type Parts = Record<string, unknown>;

async function readSmall(path: string): Promise<string> {
  const text = await readFile(path, "utf8");
  if (text.length > MAX_FILE) throw new Error(`${path} has more than ${MAX_FILE} bytes`);
  return text;
}

function textAt({ document }: EntryContext, path: KeyPath, parts: Parts, key: string): string {
  const value = parts[key];
  // the type only: what stands there may be secret
  if (typeof value !== "string" || value === "") {
    const got = value === "" ? "an empty one" : value === null ? "null" : typeof value;
    throw configError(document, value === undefined ? path : [...path, key], `needs a text "${key}", got ${got}`);
  }
  return value;
}

/** The options that the file and the functions call alike. */
function common({ folder }: EntryContext, parts: Parts): Parts {
  const { type: _type, store, ...others } = parts;
  return { ...others, ...(typeof store === "string" && { store: fileTokenStore(resolve(folder, store)) }) };
}

async function make(context: EntryContext, path: KeyPath, parts: Parts): Promise<Auth> {
  const { folder, document } = context;
  switch (parts.type) {
    case "bearer":
      return bearer(textAt(context, path, parts, "token"));
    case "clientCredentials": {
      const { privateKeyFile, ...options } = common(context, parts);
      textAt(context, path, parts, "clientId");
      if (privateKeyFile === undefined && options.privateKey === undefined)
        textAt(context, path, parts, "clientSecret");
      if (privateKeyFile !== undefined) {
        const file = textAt(context, path, parts, "privateKeyFile");
        options.privateKey = await readSmall(resolve(folder, file)).catch((cause: unknown) => {
          const reason = messageOf(cause);
          throw configError(
            document,
            [...path, "privateKeyFile"],
            `cannot be read: ${reason}`,
            "invalid_config",
            cause,
          );
        });
      }
      return clientCredentials(options as unknown as Parameters<typeof clientCredentials>[0]); // it checks them
    }
    case "workloadIdentity": {
      const { tokenFile: _file, ...options } = common(context, parts);
      const file = resolve(folder, textAt(context, path, parts, "tokenFile"));
      return workloadIdentity({ ...options, token: () => readSmall(file) });
    }
    default: {
      const { clientId, clientSecret, ...options } = common(context, parts);
      if (clientSecret !== undefined || clientId !== undefined) {
        textAt(context, path, parts, "clientId");
        options.client = { clientId, ...(clientSecret !== undefined && { clientSecret }) };
      }
      const { onAuthorize } = context;
      return oauth({ ...options, ...(onAuthorize !== undefined && { onAuthorize }) });
    }
  }
}

/** Cursor writes a client that is known already in its own way. */
function fromCursor(value: Parts): Parts {
  const { CLIENT_ID: clientId, CLIENT_SECRET: clientSecret, ...others } = value;
  if (clientId === undefined || value.type !== undefined) return value;
  return { type: "oauth", clientId, ...(clientSecret !== undefined && { clientSecret }), ...others };
}

/**
 * The `auth` of an entry, variables replaced, as a value for `createClient`.
 * @throws ConfigError naming file, line and key; no value is repeated
 */
export async function readAuth(context: EntryContext, path: KeyPath, given: unknown): Promise<Auth> {
  const { document } = context;
  const types = Object.keys(AUTH_KEYS);
  if (!isRecord(given)) throw configError(document, path, `must be an object with a type: ${types.join(", ")}`);
  const value = fromCursor(given);
  const { type } = value;
  const keys = typeof type === "string" && Object.hasOwn(AUTH_KEYS, type) ? AUTH_KEYS[type] : undefined;
  if (!keys) {
    const near = typeof type === "string" ? didYouMean(type, types) : undefined;
    const hint = near ? `did you mean "${near}"?` : `expected one of ${types.join(", ")}`;
    throw configError(document, [...path, "type"], `is ${shownValue(type)}; ${hint}`);
  }
  for (const key of Object.keys(value)) {
    if (checkKey(document, path, key, keys)) continue;
    throw configError(document, [...path, key], `is no known key; known keys: ${keys.join(", ")}`, "unknown_option");
  }
  if (value.store !== undefined) textAt(context, path, value, "store");
  try {
    return await make(context, path, value);
  } catch (cause) {
    const known = cause instanceof TenonError && !("key" in (isRecord(cause.data) ? cause.data : {}));
    if (!known) throw cause;
    const [, key = ""] = /\)\.(\w+)/.exec(cause.message) ?? [];
    const at = key === "" || value[key] === undefined ? path : [...path, key];
    throw configError(document, at, `is not usable: ${cause.message}`, cause.code, cause);
  }
}
