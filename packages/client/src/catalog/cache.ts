import { digest, jsonSize } from "@tenon/core/internal";
import { Shelf } from "./shelf.ts";

const MAX_ENTRIES = 512;
/** Bytes kept per server, about. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Milliseconds an answer is kept at most, whatever its server says: a day. */
export const MAX_TTL_MS = 24 * 60 * 60 * 1_000;

/** How long and for whom an answer may be kept, as its server says. */
export interface Freshness {
  /** Milliseconds; absent on the older revision, where nothing is kept. */
  readonly ttlMs?: number | undefined;
  /** `public`: the same for everybody. Anything else is taken as `private`. */
  readonly scope?: string | undefined;
}

/** Reads the freshness of a raw answer. */
export function freshnessOf(raw: Readonly<Record<string, unknown>>): Freshness {
  const { ttlMs, cacheScope } = raw;
  return {
    ...(typeof ttlMs === "number" && { ttlMs: Math.min(Math.max(0, ttlMs), MAX_TTL_MS) }),
    ...(typeof cacheScope === "string" && { scope: cacheScope }),
  };
}

/**
 * Who asks, as far as the server can tell: everything a request carries beside its own parameters.
 * @param principal whom the server's `auth` stands for
 */
export function identityOf(
  headers: Readonly<Record<string, string>>,
  meta: Readonly<Record<string, unknown>>,
  principal = "",
): string {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  if (lower.length === 0 && Object.keys(meta).length === 0) return principal;
  return digest([Object.fromEntries(lower), meta, principal]);
}

/**
 * Answers of one server that may be used again. A private one is found only by whoever brought the same headers and meta;
 * those unused longest give way.
 */
export class AnswerCache {
  readonly #shelf = new Shelf<unknown>(MAX_ENTRIES, MAX_BYTES);

  /** The kept answer for this identity, or for everybody. */
  get(key: string, identity: string): unknown {
    return this.#shelf.get(`private ${identity} ${key}`) ?? this.#shelf.get(`public ${key}`);
  }

  /** Keeps an answer as long as its server allows. */
  set(key: string, identity: string, { ttlMs = 0, scope }: Freshness, value: unknown): void {
    if (!(ttlMs > 0)) return;
    const place = scope === "public" ? `public ${key}` : `private ${identity} ${key}`;
    this.#shelf.set(place, value, jsonSize(value, MAX_BYTES), ttlMs);
  }
}
