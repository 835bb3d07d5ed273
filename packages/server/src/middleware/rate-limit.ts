import { ConfigError, keepNewest } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { callerKey } from "../auth/caller.ts";
import { ToolError } from "../errors.ts";
import type { Middleware } from "./onion.ts";
import type { ServerRequest } from "./request.ts";

/** How many requests are let in. */
export interface RateLimitOptions {
  /** Requests in one window; they may come all at once. */
  limit: number;
  /** Length of the window in milliseconds. Spent requests come back evenly over it. */
  windowMs: number;
  /** Methods that count. Default: those that run a handler (`tools/call`, `resources/read`, `prompts/get`). */
  methods?: readonly string[];
  /**
   * What has a limit of its own: each caller (default), that is subject and client of the verified token, callers without one
   * together; or what the function returns.
   */
  per?: "caller" | ((request: ServerRequest) => string);
  /** Keys remembered at once; beyond it those idle longest are forgotten first. Default 10,000. */
  maxKeys?: number;
}

/** The caller asked too often. `data` is `{ code: "rate_limited", retryAfterMs }`. */
export class RateLimitError extends ToolError {
  constructor(limit: number, windowMs: number, retryAfterMs: number) {
    super(
      `Too many requests: ${limit} in ${windowMs / 1000} s are allowed; try again in ${Math.ceil(retryAfterMs / 1000)} s`,
      { code: "rate_limited", data: { code: "rate_limited", retryAfterMs } },
    );
  }
}

const RUNNING = ["tools/call", "resources/read", "prompts/get"];

/**
 * Limits how often one caller may ask (the revision asks servers to rate-limit tools). Keeps one number per caller: the time
 * at which everything it spent will have come back (the generic cell rate algorithm).
 *
 * @throws ConfigError for a limit that is not positive; the middleware throws RateLimitError
 * @example server.use(rateLimit({ limit: 60, windowMs: 60_000 }))
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  checkOptions(options, ["limit", "windowMs", "methods", "per", "maxKeys"], "rateLimit(options)");
  const { limit, windowMs, methods = RUNNING, per = "caller", maxKeys = 10_000 } = options;
  if (!(limit > 0 && windowMs > 0 && maxKeys > 0)) {
    throw new ConfigError(
      `rateLimit(options): limit, windowMs and maxKeys must be positive, got ${JSON.stringify(options)}`,
      { code: "rate_limit" },
    );
  }
  if (typeof per !== "function" && per !== "caller") {
    throw new ConfigError(`rateLimit(options).per must be "caller" or a function, got ${JSON.stringify(per)}`, {
      code: "rate_limit",
    });
  }
  const keyOf = typeof per === "function" ? per : ({ caller }: ServerRequest) => callerKey(caller);
  const cost = windowMs / limit;
  const free = new Map<string, number>();
  return (request, next) => {
    if (!methods.includes(request.method)) return next();
    const now = performance.now();
    const key = keyOf(request);
    const until = Math.max(free.get(key) ?? now, now) + cost;
    const wait = until - now - windowMs;
    if (wait > cost * 1e-3) throw new RateLimitError(limit, windowMs, Math.ceil(wait));
    keepNewest(free, key, until, maxKeys);
    return next();
  };
}
