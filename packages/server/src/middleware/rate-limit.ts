import { ConfigError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { callerKey } from "../auth/caller.ts";
import { ToolError } from "../errors.ts";
import type { Middleware, ServerRequest } from "./onion.ts";

/** How much one caller may ask for. */
export interface RateLimitOptions {
  /** Requests of one caller in one window; they may come all at once. */
  perCaller: number;
  /** Length of the window in milliseconds. Spent requests come back evenly over it. */
  windowMs: number;
  /** Methods that count. Default: those that run a handler (`tools/call`, `resources/read`, `prompts/get`). */
  methods?: readonly string[];
  /** Callers remembered at once; beyond it those idle longest are forgotten first. Default 10,000. */
  maxCallers?: number;
  /** Who a request counts for. Default: subject and client of the verified token; callers without one share a limit. */
  key?: (request: ServerRequest) => string;
}

/** The caller asked too often. `data` is `{ code: "rate_limited", retryAfterMs }`. */
export class RateLimitError extends ToolError {
  constructor(perCaller: number, windowMs: number, retryAfterMs: number) {
    super(
      `Too many requests: ${perCaller} in ${windowMs / 1000} s are allowed; try again in ${Math.ceil(retryAfterMs / 1000)} s`,
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
 * @example server.use(rateLimit({ perCaller: 60, windowMs: 60_000 }))
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  checkOptions(options, ["perCaller", "windowMs", "methods", "maxCallers", "key"], "rateLimit(options)");
  const {
    perCaller,
    windowMs,
    methods = RUNNING,
    maxCallers = 10_000,
    key = ({ caller }) => callerKey(caller),
  } = options;
  if (!(perCaller > 0 && windowMs > 0 && maxCallers > 0)) {
    throw new ConfigError(
      `rateLimit: perCaller, windowMs and maxCallers must be positive, got ${JSON.stringify(options)}`,
      {
        code: "rate_limit",
      },
    );
  }
  const cost = windowMs / perCaller;
  // insertion order is order of last use: an entry is set again with each request
  const free = new Map<string, number>();
  return (request, next) => {
    if (!methods.includes(request.method)) return next();
    const now = performance.now();
    const who = key(request);
    const until = Math.max(free.get(who) ?? now, now) + cost;
    const wait = until - now - windowMs;
    if (wait > cost * 1e-3) throw new RateLimitError(perCaller, windowMs, Math.ceil(wait));
    free.delete(who);
    free.set(who, until);
    if (free.size > maxCallers) {
      for (const oldest of free.keys()) {
        free.delete(oldest);
        break;
      }
    }
    return next();
  };
}
