import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError, isRecord, TenonError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { limitRepeats } from "../call/marks.ts";
import { isToolResult } from "../call/results.ts";
import { isRepeatable } from "../catalog/hints.ts";
import { backoff } from "../connection/time.ts";
import type { ToolCallRequest } from "../types/calls.ts";
import type { AnyInterceptor } from "../types/interceptors.ts";
import { general, noteFactory } from "./general.ts";

/** How often a call is tried, and how long altogether. */
export interface RetryOptions {
  /** Sendings of one call at most, the first one and those of the client itself included. Default 3. */
  maxAttempts?: number;
  /** Milliseconds before the second sending, about; later waits double, with jitter. Default 200. */
  initialDelayMs?: number;
  /** Longest wait between two sendings that nobody asked for, in milliseconds. Default 5,000. */
  maxDelayMs?: number;
  /** No sending starts later than this many milliseconds after the first. Default 30,000. */
  totalMs?: number;
}

/** Milliseconds the other side asked to wait, where it did. */
function askedDelay(detail: unknown): number | undefined {
  const ms = isRecord(detail) ? detail.retryAfterMs : undefined;
  return typeof ms === "number" && Number.isFinite(ms) && ms >= 0 ? ms : undefined;
}

/** True for a tool whose server says that a second run does no harm. */
async function repeatable(request: ToolCallRequest): Promise<boolean> {
  // who cannot be asked has not said so
  return isRepeatable(await request.definition().catch(() => undefined));
}

async function mayRepeat(request: ToolCallRequest, error: unknown): Promise<boolean> {
  if (!(error instanceof TenonError) || !error.retryable) return false;
  return error.maybeExecuted === false || (await repeatable(request));
}

/**
 * Sends a call again after an error that may pass: one that says it surely did not run, or any `retryable` one of a tool
 * that is annotated read-only or idempotent. A call of another tool that may have run is never repeated. Waits as long as
 * the error's `data.retryAfterMs` asks, else exponentially longer with jitter; a wait that ends after `totalMs` is not
 * begun. A tool's own error (`isError`) is tried again only where its structured content has `retryAfterMs`. When the client
 * itself sends a call again (a lost connection, a busy server), that counts as one of the `maxAttempts`.
 *
 * @throws ConfigError for numbers that are not positive; the interceptor throws the last error as it came
 * @example createClient({ servers, interceptors: [retry({ maxAttempts: 4 })] })
 */
export function retry(options: RetryOptions = {}): AnyInterceptor {
  checkOptions(options, ["maxAttempts", "initialDelayMs", "maxDelayMs", "totalMs"], "retry(options)");
  const { maxAttempts = 3, initialDelayMs = 200, maxDelayMs = 5_000, totalMs = 30_000 } = options;
  if (!(maxAttempts >= 1 && initialDelayMs > 0 && maxDelayMs > 0 && totalMs > 0)) {
    throw new ConfigError(`retry(options): all numbers must be positive, got ${JSON.stringify(options)}`, {
      code: "invalid_option",
    });
  }

  return general(async (request, next) => {
    const until = performance.now() + totalMs;
    const waits = backoff({ firstMs: initialDelayMs, mostMs: maxDelayMs });
    const budget = { left: Math.floor(maxAttempts) - 1 };
    const giveBack = limitRepeats(request.runtime, budget);
    /** Waits for the next sending; false when there is none. */
    const again = async (detail: unknown): Promise<boolean> => {
      const delay = askedDelay(detail) ?? waits.next();
      if (budget.left < 1 || request.signal.aborted || performance.now() + delay > until) return false;
      budget.left--;
      return sleep(delay, true, { signal: request.signal }).catch(() => false);
    };
    try {
      for (;;) {
        try {
          const outcome = await next(request);
          const asks = isToolResult(outcome) && outcome.isError && askedDelay(outcome.structured) !== undefined;
          if (asks && (await repeatable(request)) && (await again(outcome.structured))) continue;
          return outcome;
        } catch (error) {
          const detail = error instanceof TenonError ? error.data : undefined;
          if (!(await mayRepeat(request, error)) || !(await again(detail))) throw error;
        }
      }
    } finally {
      giveBack();
    }
  });
}

noteFactory(retry, "retry()");
