import { isRecord } from "@tenon/core";
import type { CryptoKey, JSONWebKeySet } from "jose";
import type { ServerLog } from "../log.ts";
import { invalidToken, unavailable } from "./errors.ts";
import { fetchJson } from "./fetch-json.ts";
import type { KeySource } from "./keys.ts";

/** When the keys of an issuer are read again. */
export interface KeySetTimes {
  /** Milliseconds after which the set is read again. */
  readonly freshMs: number;
  /** Milliseconds a set may be used when it cannot be read again. */
  readonly staleMs: number;
  /** Milliseconds between two readings for keys that are not in the set: strangers choose what a token names. */
  readonly cooldownMs: number;
  /** Milliseconds to the next try after one that failed. */
  readonly retryMs: number;
  readonly timeoutMs: number;
}

export const KEY_SET_TIMES: KeySetTimes = {
  freshMs: 10 * 60_000,
  staleMs: 24 * 60 * 60_000,
  cooldownMs: 30_000,
  retryMs: 5_000,
  timeoutMs: 5_000,
};

const MAX_BYTES = 512 * 1024;
const MAX_KEYS = 100;
/** Keys that are tried for a token that names none. */
const MAX_CANDIDATES = 8;

function keySetOf(given: unknown, what: string): JSONWebKeySet {
  const keys = isRecord(given) && Array.isArray(given.keys) ? given.keys : undefined;
  if (!keys || keys.length === 0 || keys.length > MAX_KEYS || !keys.every(isRecord)) {
    throw unavailable(`${what} are no key set of 1 to ${MAX_KEYS} keys (RFC 7517)`);
  }
  return { keys } as JSONWebKeySet; // records; a key that is none is never found usable
}

/**
 * The keys an issuer publishes (RFC 7517). They are read when first needed, again after a while, and once when a token names a
 * key that is not there, which is how issuers change keys. When they cannot be read, the last ones serve on for a limited time.
 * @param url https, or http on this machine: checked by the caller
 */
export function publishedKeys(url: URL, times: KeySetTimes): KeySource {
  const what = `the keys at ${url.origin}${url.pathname}`;
  type Find = ReturnType<typeof import("jose")["createLocalJWKSet"]>;
  let held: { find: Find; readAt: number } | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;
  let failure: unknown;
  let reading: Promise<void> | undefined;

  /** Reads the set, once for everybody who waits; after a failure not again at once. */
  function read(): Promise<void> {
    if (reading) return reading;
    if (performance.now() - failedAt < times.retryMs) return Promise.reject(failure);
    reading = (async () => {
      try {
        const { createLocalJWKSet } = await import("jose");
        const limits = { timeoutMs: times.timeoutMs, maxBytes: MAX_BYTES };
        const headers = { accept: "application/jwk-set+json, application/json" };
        const set = keySetOf(await fetchJson(url, { method: "GET", headers }, limits, what), what);
        held = { find: createLocalJWKSet(set), readAt: performance.now() };
      } catch (error) {
        failedAt = performance.now();
        failure = error;
        throw error;
      } finally {
        reading = undefined;
      }
    })();
    return reading;
  }

  const age = (): number => (held ? performance.now() - held.readAt : Number.POSITIVE_INFINITY);

  async function current(log: ServerLog): Promise<Find> {
    if (age() > times.freshMs) {
      const tried = failedAt;
      const again = read().catch((error: unknown) => {
        if (age() > times.staleMs) throw error;
        if (failedAt !== tried) log("warning", `${what} could not be read again; the last ones serve on`, { error });
      });
      // who waited once need not wait for every further try while the last keys may serve
      const failing = held !== undefined && tried > held.readAt && age() <= times.staleMs;
      if (failing) again.catch(() => undefined);
      else await again;
    }
    if (!held) throw unavailable(`${what} were not read`);
    return held.find;
  }

  async function candidates(find: Find, header: { alg: string; kid?: string }): Promise<CryptoKey[] | undefined> {
    const { errors } = await import("jose");
    try {
      return [await find(header)];
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return undefined;
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw unavailable(`${what} cannot be used`, error);
      const found: CryptoKey[] = [];
      for await (const key of error) {
        found.push(key);
        if (found.length === MAX_CANDIDATES) break;
      }
      return found;
    }
  }

  return async ({ alg, kid }, log) => {
    const header = { alg, ...(kid !== undefined && { kid }) };
    const found = await candidates(await current(log), header);
    if (found) return found;
    if (age() >= times.cooldownMs) {
      // a failed reading leaves open whether the key is a new one: that is no proof against the token
      await read();
      const again = held && (await candidates(held.find, header));
      if (again) return again;
    }
    throw invalidToken("unknown_key", "The token was signed with an unknown key");
  };
}
