import { ConfigError, isRecord } from "@tenon/core";
import { shownValue } from "@tenon/core/internal";
import type { TokenSource } from "./keeper.ts";
import { memoryTokenStore, type TokenStore } from "./store.ts";
import type { AuthKind } from "./types.ts";

/** Options that every way to get tokens has. */
export interface CommonOptions {
  /** Where tokens are kept. Default: in memory. */
  store?: TokenStore;
  /** Scopes to ask for besides those a server demands. Default: what the server says. */
  scopes?: readonly string[];
  /**
   * The authorization server's issuer. No other one gets a credential; left out, a configured secret goes to the first that a
   * server names, and to no other after that, whichever server names it.
   */
  issuer?: string;
  /** Binds tokens to a key of this client (RFC 9449), so that a stolen one is of no use. Default false. */
  dpop?: boolean;
  /** Lets a server's metadata lead to this machine and to private networks. Default: only for a server that is there itself. */
  allowPrivateNetwork?: boolean;
}

/** The names of the common options. */
export const COMMON = ["store", "scopes", "issuer", "dpop", "allowPrivateNetwork"] as const;

function wrong(message: string): never {
  throw new ConfigError(message, { code: "invalid_option" });
}

/** Refuses common options that would not be understood. @throws ConfigError `invalid_option` */
export function checkCommon(options: CommonOptions, where: string): void {
  const { store, scopes, issuer, dpop, allowPrivateNetwork } = options;
  const parts: unknown = store;
  if (
    parts !== undefined &&
    !(isRecord(parts) && ["get", "set", "exclusively"].every((name) => typeof parts[name] === "function"))
  ) {
    wrong(`${where}.store must be a store such as fileTokenStore(path)`);
  }
  const list: unknown = scopes;
  if (
    list !== undefined &&
    !(Array.isArray(list) && list.every((one) => typeof one === "string" && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(one)))
  ) {
    wrong(`${where}.scopes must be a list of scopes, got ${shownValue(list)}`);
  }
  if (issuer !== undefined && !URL.canParse(issuer))
    wrong(`${where}.issuer must be an address, got ${shownValue(issuer)}`);
  for (const [name, value] of Object.entries({ dpop, allowPrivateNetwork })) {
    if (value !== undefined && typeof value !== "boolean") wrong(`${where}.${name} must be true or false`);
  }
}

/** Refuses a missing or empty text; the value is not repeated, it may be secret. @throws ConfigError `invalid_option` */
export function checkText(value: unknown, where: string): void {
  if (typeof value !== "string" || value === "")
    wrong(`${where} must be a text, got ${value === "" ? "an empty one" : typeof value}`);
}

/** The part of a token source that the common options say. */
export function sourceOf(kind: AuthKind, options: CommonOptions) {
  const { store = memoryTokenStore(), scopes = [], issuer, dpop = false, allowPrivateNetwork } = options;
  return {
    kind,
    store,
    scopes: [...scopes],
    issuer,
    dpop,
    allowPrivateNetwork,
    configured: [issuer],
  } satisfies Partial<TokenSource>;
}
