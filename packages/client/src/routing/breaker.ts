import { createRequire } from "node:module";
import { ConnectionError, ContractError, isRecord, ProtocolError } from "@tenon/core";
import type * as Cockatiel from "cockatiel";
import type { CircuitState, IBreaker } from "cockatiel";
import type { BreakerOptions, BreakerRate, BreakerState } from "../types/routing.ts";

/** Loaded with the first breaker: most clients have none. */
const cockatiel = (): typeof Cockatiel => createRequire(import.meta.url)("cockatiel");

const DEFAULTS = { failures: 50, windowMs: 60_000, openMs: 300_000 } as const;
const MINIMUM_CALLS = 20;
/** Parts that the window of the rate rule is counted in. */
const PARTS = 10;

/**
 * Whether an error says that the place is sick: it could not be reached, was cut off, silent, in trouble or against the protocol. What it
 * refuses (credentials, arguments, a context) and what a caller ends says nothing about it.
 */
export function isSick(error: unknown): boolean {
  // silent when it was asked for its contract
  if (error instanceof ContractError) return error.code === "negotiation" && error.retryable;
  if (error instanceof ProtocolError) return error.code === "bad_answer" || error.code === "pagination_loop";
  if (!(error instanceof ConnectionError)) return false;
  if (error.code === "unreachable" || error.code === "lost" || error.code === "timeout") return true;
  const status = isRecord(error.data) ? error.data.status : undefined;
  return error.code === "http_error" && typeof status === "number" && status >= 500;
}

/** An end that says nothing either way. */
function saysNothing(error: unknown): boolean {
  return error instanceof ConnectionError && (error.code === "cancelled" || error.code === "closed");
}

/** Says yes with more than `most` failures within the window: the oldest of the last `most + 1` is young enough. */
function countRule(most: number, windowMs: number, now: () => number) {
  const times: number[] = new Array(most + 1).fill(Number.NEGATIVE_INFINITY);
  let next = 0;
  return {
    failed(): boolean {
      times[next] = now();
      next = (next + 1) % times.length;
      const oldest = times[next] ?? Number.NEGATIVE_INFINITY;
      return now() - oldest <= windowMs;
    },
    reset(): void {
      times.fill(Number.NEGATIVE_INFINITY);
    },
  };
}

/** Says yes when more than a share of the requests within the window failed. */
function rateRule({ threshold, minimumCalls = MINIMUM_CALLS }: BreakerRate, windowMs: number, now: () => number) {
  const partMs = windowMs / PARTS;
  let parts: { readonly at: number; failed: number; all: number }[] = [];
  const note = (failed: boolean): void => {
    const at = Math.floor(now() / partMs);
    if (parts.at(-1)?.at !== at) parts = [...parts.filter((part) => part.at > at - PARTS), { at, failed: 0, all: 0 }];
    const part = parts.at(-1);
    if (!part) return;
    part.all++;
    if (failed) part.failed++;
  };
  return {
    succeeded: () => note(false),
    failed(): boolean {
      note(true);
      const all = parts.reduce((sum, part) => sum + part.all, 0);
      return all >= minimumCalls && parts.reduce((sum, part) => sum + part.failed, 0) > threshold * all;
    },
    reset: () => {
      parts = [];
    },
  };
}

/** Leaves a replica alone while it is sick. */
export interface Breaker {
  readonly state: BreakerState;
  /** When it lets a call through again, in milliseconds by `Date.now`; undefined while it is not open. */
  readonly retryAt: number | undefined;
  /** Whether `run` lets a call through now, without waiting for another one. */
  readonly admits: boolean;
  /** Runs what is to be watched. Asked for `admits` in the same turn, it runs at once. @throws what `work` throws */
  run<T>(work: () => Promise<T>): Promise<T>;
}

/**
 * A circuit breaker of cockatiel with Tenon's rules.
 * @param onChange called after each change of `state`
 */
export function createBreaker(options: BreakerOptions, onChange: (state: BreakerState) => void): Breaker {
  const { CircuitState: State, circuitBreaker, handleWhen } = cockatiel();
  const { failures = DEFAULTS.failures, windowMs = DEFAULTS.windowMs, openMs = DEFAULTS.openMs } = options;
  const now = () => performance.now();
  const count = countRule(failures, windowMs, now);
  const rate = options.rate && rateRule(options.rate, windowMs, now);
  const rules: IBreaker = {
    state: undefined,
    success(state: CircuitState) {
      if (state !== State.HalfOpen) return rate?.succeeded();
      count.reset();
      rate?.reset();
    },
    failure(state: CircuitState) {
      const many = count.failed();
      const often = rate?.failed() ?? false;
      return state !== State.Closed || many || often;
    },
  };
  let retryAt: number | undefined;
  let duration: number = openMs;
  const halfOpenAfter = {
    next: ({ result }: { readonly result: object }) => {
      // a try that its caller gave up leaves the question open: the next call is the next try
      duration = "error" in result && saysNothing(result.error) ? 0 : openMs;
      return { duration, next: halfOpenAfter.next };
    },
  };
  const handled = handleWhen((error) => isSick(error) || (policy.state === State.HalfOpen && saysNothing(error)));
  const policy = circuitBreaker(handled, { breaker: rules, halfOpenAfter });
  const due = () => retryAt !== undefined && Date.now() >= retryAt;
  const stateOf = (): BreakerState => {
    if (policy.state === State.Closed) return "closed";
    return policy.state === State.Open && !due() ? "open" : "half-open";
  };
  policy.onStateChange((state) => {
    if (state === State.Closed) retryAt = undefined;
    // by a clock that is read after the policy's own: what is due here, it lets through
    if (state === State.Open) retryAt = Date.now() + duration;
    onChange(stateOf());
  });
  return {
    get state() {
      return stateOf();
    },
    get retryAt() {
      return policy.state === State.Closed ? undefined : retryAt;
    },
    get admits() {
      return policy.state === State.Closed || (policy.state === State.Open && due());
    },
    async run(work) {
      if (policy.state !== State.Closed) return policy.execute(work);
      try {
        // what goes well costs nothing: the policy is told of failures only
        const answer = await work();
        rate?.succeeded();
        return answer;
      } catch (error) {
        // one that began before it opened says nothing new
        if (isSick(error) && policy.state === State.Closed)
          await policy.execute(() => Promise.reject(error)).catch(() => {});
        throw error;
      }
    },
  };
}
