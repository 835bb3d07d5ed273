import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError, ExecutionError, keepNewest } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { cancelled } from "../connection/deadline.ts";
import type { ToolCallRequest } from "../types/calls.ts";
import type { AnyInterceptor } from "../types/interceptors.ts";
import { general, noteFactory } from "./general.ts";

/** How many calls may leave. */
export interface RateLimitOptions {
  /** Calls in one window; they may leave all at once. */
  limit: number;
  /** Length of the window in milliseconds. Spent calls come back evenly over it. */
  windowMs: number;
  /** What has a limit of its own: each server (default), each tool, or what the function returns. */
  per?: "server" | "tool" | ((request: ToolCallRequest) => string);
  /** Milliseconds a call may wait for its turn. Default 0: it is refused at once. */
  maxWaitMs?: number;
  /** Keys remembered at once; beyond it those idle longest are forgotten first. Default 10,000. */
  maxKeys?: number;
}

const KEYS = {
  server: ({ server }: ToolCallRequest) => server,
  tool: ({ server, name }: ToolCallRequest) => JSON.stringify([server, name]),
};

function refused({ server, name }: ToolCallRequest, wait: number, limit: number, windowMs: number): ExecutionError {
  const at = new Date(Date.now() + wait).toISOString();
  return new ExecutionError(
    `tools/call ${name} on server "${server}" was not sent: ${limit} calls in ${windowMs / 1000} s are allowed here; ` +
      `try again in ${Math.ceil(wait / 1000)} s (${at})`,
    { code: "rate_limited", server, retryable: true, maybeExecuted: false, data: { retryAfterMs: wait, at } },
  );
}

/**
 * Limits how many calls leave, per server, tool or a key of your own. A call whose turn is further away than `maxWaitMs`
 * is refused with `rate_limited`, whose `data` is `{ retryAfterMs, at }`; `retry` around it waits that long. Keeps one
 * number per key: the time at which all it spent has come back (the generic cell rate algorithm).
 *
 * @throws ConfigError for numbers that are not positive; the interceptor throws ExecutionError `rate_limited`
 * @example createClient({ servers, interceptors: [rateLimit({ limit: 10, windowMs: 1_000, per: "tool", maxWaitMs: 5_000 })] })
 */
export function rateLimit(options: RateLimitOptions): AnyInterceptor {
  checkOptions(options, ["limit", "windowMs", "per", "maxWaitMs", "maxKeys"], "rateLimit(options)");
  const { limit, windowMs, per = "server", maxWaitMs = 0, maxKeys = 10_000 } = options;
  if (!(limit > 0 && windowMs > 0 && maxKeys > 0 && maxWaitMs >= 0)) {
    throw new ConfigError(
      `rateLimit(options): limit, windowMs and maxKeys must be positive, got ${JSON.stringify(options)}`,
      { code: "invalid_option" },
    );
  }
  if (typeof per !== "function" && !Object.hasOwn(KEYS, per)) {
    throw new ConfigError(`rateLimit(options).per must be "server", "tool" or a function, got ${JSON.stringify(per)}`, {
      code: "invalid_option",
    });
  }
  const keyOf = typeof per === "function" ? per : KEYS[per];
  const cost = windowMs / limit;
  const free = new Map<string, number>();

  return general(async (request, next) => {
    const now = performance.now();
    const key = keyOf(request);
    const until = Math.max(free.get(key) ?? now, now) + cost;
    const wait = Math.ceil(until - now - windowMs - cost * 1e-3);
    if (wait > maxWaitMs) throw refused(request, wait, limit, windowMs);
    keepNewest(free, key, until, maxKeys);
    if (wait > 0) {
      const { signal, server, name } = request;
      const waited = await sleep(wait, true, { signal }).catch(() => false);
      if (!waited) {
        // its turn goes to whoever asks next
        free.set(key, (free.get(key) ?? until) - cost);
        throw cancelled(server, `tools/call ${name}`, signal.reason, false);
      }
    }
    return next(request);
  });
}

noteFactory(rateLimit, "rateLimit({ limit: 100, windowMs: 1_000 })");
