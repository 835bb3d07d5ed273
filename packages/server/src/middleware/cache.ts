import type { Result } from "@modelcontextprotocol/server";
import { ConfigError, keepNewest } from "@tenon/core";
import { checkOptions, digest } from "@tenon/core/internal";
import { callerKey } from "../auth/caller.ts";
import type { Caller } from "../handler/context.ts";
import type { Middleware } from "./onion.ts";
import type { ServerRequest } from "./request.ts";

/** What is kept, and for how long. */
export interface CacheOptions {
  /** Milliseconds a result is given again. */
  ttlMs: number;
  /** Results kept at once; the one unused longest goes first. Default 1,000. */
  maxEntries?: number;
  /** Characters of JSON of one result that is kept; larger ones are not. Default 256 Ki. */
  maxEntryChars?: number;
  /** What a result may depend on besides caller (with claims and scopes), era, method, name and arguments, such as a header. */
  key?: (request: ServerRequest) => string;
}

/** Whether an answer to this request may be given again. */
function cacheable({ target, resumed, method }: ServerRequest): boolean {
  const readable = method === "resources/read" || (method === "tools/call" && target?.kind === "tool");
  return readable && target?.readOnly === true && !resumed;
}

/** Claims that differ from token to token of the same caller, and say nothing of what it may see. */
const OF_ONE_TOKEN: ReadonlySet<string> = new Set(["exp", "iat", "nbf", "jti"]);

/** What a handler may look at in a caller besides who it is: one of several organisations that the token was made for, a role. */
const claimsOf = (caller: Caller | undefined): Record<string, unknown> =>
  Object.fromEntries(Object.entries(caller?.claims ?? {}).filter(([name]) => !OF_ONE_TOKEN.has(name)));

/**
 * Gives the results of read-only tools (`readOnlyHint`) and of resources again while they are fresh, to the same caller with
 * the same claims and scopes only. Errors, questions and the rounds after them are never kept (2026-07-28, caching). Callers without a
 * token share one cache: leave it out, or pass `key`, where handlers look at anything else.
 *
 * @throws ConfigError for a `ttlMs` that is not positive
 * @example server.use(cache({ ttlMs: 5_000 }))
 */
export function cache(options: CacheOptions): Middleware {
  checkOptions(options, ["ttlMs", "maxEntries", "maxEntryChars", "key"], "cache(options)");
  const { ttlMs, maxEntries = 1_000, maxEntryChars = 256 * 1024, key = () => "" } = options;
  if (!(ttlMs > 0)) throw new ConfigError(`cache(options): ttlMs must be positive, got ${ttlMs}`, { code: "cache" });
  // insertion order is order of last use
  const kept = new Map<string, { result: string; until: number }>();

  return async (request, next) => {
    if (!cacheable(request)) return next();
    const { method, name, era, caller, params } = request;
    const scopes = [...(caller?.scopes ?? [])].sort();
    const place = digest([
      callerKey(caller),
      claimsOf(caller),
      scopes,
      era,
      method,
      name ?? null,
      params.arguments ?? null,
      key(request),
    ]);
    const found = kept.get(place);
    kept.delete(place);
    if (found && found.until > performance.now()) {
      kept.set(place, found);
      return JSON.parse(found.result) as Result; // written below; text, so that nobody can change what others get
    }
    const result = await next();
    if (result.isError === true || (result.resultType ?? "complete") !== "complete") return result;
    const text = JSON.stringify(result);
    if (text.length > maxEntryChars) return result;
    keepNewest(kept, place, { result: text, until: performance.now() + ttlMs }, maxEntries);
    return result;
  };
}
