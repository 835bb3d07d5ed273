import { isRecord } from "@tenon/core";

/**
 * Where tokens and registered clients are kept. Values are plain JSON and secret; keys name an issuer, a resource or a server.
 * `memoryTokenStore` and `fileTokenStore` are two; a key chain is easily a third.
 */
export interface TokenStore {
  /** Whether another process finds the same content. */
  readonly durable: boolean;
  /** The value, or undefined. */
  get(key: string): Promise<unknown>;
  /** Keeps a value; `undefined` takes it away. */
  set(key: string, value: unknown): Promise<void>;
  /** Runs `work` while nobody else does for the same key. */
  exclusively<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** A chain of works per key: each begins when the one before has ended, well or not. */
export function createQueues(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (key, work) => {
    const running = (last.get(key) ?? Promise.resolve()).then(work, work);
    const settled = running.catch(() => {});
    last.set(key, settled);
    void settled.then(() => {
      if (last.get(key) === settled) last.delete(key);
    });
    return running;
  };
}

/** Keeps tokens for as long as the process runs. The default. */
export function memoryTokenStore(): TokenStore {
  const values = new Map<string, unknown>();
  const queue = createQueues();
  return {
    durable: false,
    get: async (key) => structuredClone(values.get(key)),
    set: async (key, value) => {
      if (value === undefined) values.delete(key);
      else values.set(key, structuredClone(value));
    },
    exclusively: queue,
  };
}

/** The tokens for one server, as they are kept. */
export interface TokenSet {
  readonly issuer: string;
  readonly resource: string;
  readonly accessToken: string;
  /** `Bearer` or `DPoP`. */
  readonly tokenType: string;
  readonly refreshToken?: string;
  /** When the token ends, and when a new one is asked for, in milliseconds since 1970. */
  readonly expiresAt?: number;
  readonly renewAt?: number;
  /** Scopes as granted, where the authorization server said so, or as asked for. */
  readonly scope?: string;
  /** Random; stays the same while tokens are renewed. */
  readonly principal: string;
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const isTextOrNone = (value: unknown): value is string | undefined => value === undefined || typeof value === "string";
const isNumberOrNone = (value: unknown): value is number | undefined =>
  value === undefined || typeof value === "number";

/** Whether what a store gave is a set of tokens. */
export function isTokenSet(value: unknown): value is TokenSet {
  if (!isRecord(value)) return false;
  const { issuer, resource, accessToken, tokenType, principal, refreshToken, scope, expiresAt, renewAt } = value;
  return (
    [issuer, resource, accessToken, tokenType, principal].every(isText) &&
    [refreshToken, scope].every(isTextOrNone) &&
    [expiresAt, renewAt].every(isNumberOrNone)
  );
}

/** A client as an authorization server knows it. */
export interface StoredClient {
  readonly clientId: string;
  readonly clientSecret?: string;
  /** How it proves who it is, as registered. */
  readonly method?: string;
  readonly redirectUrl?: string;
  /** When the secret ends, in milliseconds since 1970. */
  readonly expiresAt?: number;
}

/** Whether what a store gave is a client. */
export function isStoredClient(value: unknown): value is StoredClient {
  if (!isRecord(value) || !isText(value.clientId)) return false;
  const { clientSecret, method, redirectUrl, expiresAt } = value;
  return [clientSecret, method, redirectUrl].every(isTextOrNone) && isNumberOrNone(expiresAt);
}

/** Under which keys things are kept. */
export const storeKeys = {
  /** Issuer and resource of the tokens last used for a server's address. `owner` tells clients apart that share a store. */
  server: (owner: string, url: string) => `server ${owner} ${url}`,
  tokens: (owner: string, issuer: string, resource: string) => `tokens ${owner} ${issuer} ${resource}`,
  client: (issuer: string) => `client ${issuer}`,
  /** The issuer that a configured secret was first given to, whichever server named it. */
  issuer: (owner: string) => `issuer ${owner}`,
  dpop: "dpop",
} as const;
