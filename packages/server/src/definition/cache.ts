import { ConfigError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";

/** How long and for whom an answer may be kept (2026-07-28, caching). */
export interface CacheHint {
  /** Milliseconds the answer stays fresh; 0 means it must be asked for again. */
  ttlMs?: number;
  /** `public` only where every caller gets the same answer. */
  scope?: "private" | "public";
}

/** The methods whose answers carry a hint. */
export const CACHEABLE = [
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "server/discover",
] as const;
type Cacheable = (typeof CACHEABLE)[number];

/**
 * A hint for everything, and by method where one differs.
 * @example { ttlMs: 300_000, scope: "public", "resources/read": { ttlMs: 0 } }
 */
export type CacheOptions = CacheHint & { readonly [M in Cacheable]?: CacheHint };

/** The hint as it stands in a result. */
interface WireHint {
  readonly ttlMs: number;
  readonly cacheScope: "private" | "public";
}

/** @param own the hint of the item itself, which wins */
export type CacheHints = (method: Cacheable, own?: CacheHint) => WireHint;

/**
 * A minute for what a server offers: a client that listens hears of changes at once, another asks again soon. What a
 * resource holds may change at any moment, so it is never kept unless its author says so.
 */
const LISTS_TTL_MS = 60_000;

/** @throws ConfigError for a time that is none or an unknown scope */
export function checkHint(hint: CacheHint, where: string): void {
  checkOptions(hint, ["ttlMs", "scope"], where);
  if (hint.ttlMs !== undefined && !(Number.isSafeInteger(hint.ttlMs) && hint.ttlMs >= 0)) {
    throw new ConfigError(`${where}: ttlMs is ${hint.ttlMs}; expected whole milliseconds, 0 or more`, {
      code: "cache",
    });
  }
  if (hint.scope !== undefined && hint.scope !== "private" && hint.scope !== "public") {
    throw new ConfigError(`${where}: scope is ${JSON.stringify(hint.scope)}; expected "private" or "public"`, {
      code: "cache",
    });
  }
}

/** Resolves hints, most specific author first: the item, the method, the server, the default. */
export function createCacheHints(options: CacheOptions = {}): CacheHints {
  checkOptions(options, ["ttlMs", "scope", ...CACHEABLE], "createServer(options).cache");
  const { ttlMs, scope, ...byMethod } = options;
  checkHint({ ...(ttlMs !== undefined && { ttlMs }), ...(scope !== undefined && { scope }) }, "cache");
  for (const [method, hint] of Object.entries(byMethod)) checkHint(hint, `cache["${method}"]`);
  return (method, own) => ({
    ttlMs: own?.ttlMs ?? byMethod[method]?.ttlMs ?? ttlMs ?? (method === "resources/read" ? 0 : LISTS_TTL_MS),
    cacheScope: own?.scope ?? byMethod[method]?.scope ?? scope ?? "private",
  });
}
