import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError, ConnectionError, TenonError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { type HeldLease, type LeaseStore, processHolder } from "@tenon/store";

/** How a thread's lease is taken and kept. */
export interface ThreadLeaseOptions {
  /** Milliseconds after which others may take the thread over from a process that died; renewed every third. Default 15,000. */
  readonly ttlMs?: number;
  /** Milliseconds to wait for whoever has the thread. Default 0: says so at once. */
  readonly waitMs?: number;
  /** Who is told to others to hold the thread. Default: machine, process number and a word of its own. */
  readonly holder?: string;
  /** Whether a holder is known to be dead, so that its time need not be waited for, for example `isProcessGone`. */
  readonly isGone?: (holder: string) => boolean;
  /** Stops waiting, and is passed on to the run. */
  readonly signal?: AbortSignal;
}

/** Another run has the thread: `data` is `{ threadId, holder, until }`, `until` in milliseconds since 1970. */
export class ThreadBusyError extends TenonError {
  constructor(threadId: string, { holder, expiresAt }: HeldLease) {
    super(
      `Thread "${threadId}" is being worked on by ${holder}, until ${new Date(expiresAt).toISOString()} unless it goes on; ` +
        "try again in a moment",
      { code: "thread_busy", retryable: true, data: { threadId, holder, until: expiresAt } },
    );
  }
}

/** The lease could not be renewed in time: another run may have taken the thread over, so this one was stopped. */
export class ThreadLeaseLostError extends TenonError {
  constructor(threadId: string, cause?: unknown) {
    super(
      `The lease on thread "${threadId}" was lost: ${cause === undefined ? "another run took it over" : "its store did not answer in time"}. ` +
        "The run was stopped; read the thread before going on",
      { code: "thread_lease_lost", retryable: true, maybeExecuted: true, data: { threadId }, cause },
    );
  }
}

const TTL_MS = 15_000;
const POLL_MS = 100;
/** Node's timers fire at once when they are set to more. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** What `lease` of a run may say: its signal is the run's own. */
export const LEASE_OPTIONS: readonly string[] = ["ttlMs", "waitMs", "holder", "isGone"];

/** Names a thread among what else is leased in the same store. */
const nameOf = (threadId: string): string => `thread:${threadId}`;

/** The answer; an error after `ms` or when `done` fires: a store that is silent must not hide that the time is up. */
async function within<T>(ms: number, answer: Promise<T>, done?: AbortSignal): Promise<T> {
  const answered = new AbortController();
  const signal = done ? AbortSignal.any([done, answered.signal]) : answered.signal;
  const late = sleep(Math.min(Math.max(ms, 1), LONGEST_TIMER_MS), undefined, { signal, ref: false }).then(() => {
    throw new ConnectionError(`The lease store gave no answer in ${Math.round(ms)} ms`, {
      code: "lease_timeout",
      retryable: true,
    });
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    answered.abort();
    for (const loser of [answer, late]) loser.catch(() => undefined);
  }
}

/** Asks once. An answer that comes too late must not keep the thread. */
async function acquire(leases: LeaseStore, threadId: string, holder: string, ttlMs: number, signal?: AbortSignal) {
  const answer = leases.acquire(nameOf(threadId), holder, ttlMs);
  try {
    return await within(ttlMs, answer, signal);
  } catch (error) {
    answer.then(({ state, lease }) => (state === "yours" ? leases.release(lease) : undefined)).catch(() => undefined);
    throw error;
  }
}

async function take(leases: LeaseStore, threadId: string, ttlMs: number, options: ThreadLeaseOptions) {
  const holder = options.holder ?? processHolder();
  const deadline = performance.now() + (options.waitMs ?? 0);
  for (;;) {
    options.signal?.throwIfAborted();
    const since = performance.now();
    const { state, lease } = await acquire(leases, threadId, holder, ttlMs, options.signal);
    if (state === "yours") return { lease, since };
    // its fence goes along, so this lets go of the dead one only, not of who may have come since
    if (options.isGone?.(lease.holder)) await leases.release(lease);
    else if (performance.now() >= deadline) throw new ThreadBusyError(threadId, lease);
    else await sleep(POLL_MS, undefined, options.signal && { signal: options.signal });
  }
}

/** Renews until `done` fires; calls `lose` once when the lease is gone, or may be. */
async function keep(
  leases: LeaseStore,
  { lease, since }: { lease: HeldLease; since: number },
  ttlMs: number,
  done: AbortSignal,
  lose: (cause?: unknown) => void,
): Promise<void> {
  // counted from before the question was sent, by a clock nobody sets: never later than the store's own end
  let until = since + ttlMs;
  for (;;) {
    await sleep(Math.min(ttlMs / 3, LONGEST_TIMER_MS), undefined, { signal: done, ref: false }).catch(() => undefined);
    if (done.aborted) return;
    const at = performance.now();
    try {
      // a process that stood still past the end asks once more: nobody may have come
      const renewed = await within(at < until ? until - at : ttlMs / 3, leases.renew(lease, ttlMs), done);
      if (!renewed) return lose();
      until = at + ttlMs;
    } catch (error) {
      if (done.aborted) return;
      if (performance.now() >= until) return lose(error);
    }
  }
}

/**
 * Runs `run` while nobody else runs the thread, in any process that shares the store. Savers do not lock: without a lease two
 * processes that resume the same question both carry out what was approved.
 *
 * The lease is renewed while `run` works and released when it ends. When it is lost, `signal` fires with
 * {@link ThreadLeaseLostError}; pass it to `agent.invoke`.
 *
 * @param run gets the signal to stop at, and the lease, whose `fence` tells a late run from its successor
 * @throws ThreadBusyError when another run has the thread; ThreadLeaseLostError; ConnectionError `code: "lease_timeout"` when the store
 *   is silent for `ttlMs`; what `run` throws
 * @example
 * const result = await withThreadLease(stores.leases, "customer-7", (signal) =>
 *   agent.invoke(new Command({ resume }), { configurable: { thread_id: "customer-7" }, signal }));
 */
export async function withThreadLease<T>(
  leases: LeaseStore,
  threadId: string,
  run: (signal: AbortSignal, lease: HeldLease) => Promise<T>,
  options: ThreadLeaseOptions = {},
): Promise<T> {
  checkOptions(options, [...LEASE_OPTIONS, "signal"], "withThreadLease(leases, threadId, run, options)");
  if (typeof threadId !== "string" || threadId === "") {
    throw new ConfigError("withThreadLease needs the id of a thread", { code: "no_thread" });
  }
  const { ttlMs = TTL_MS, waitMs = 0, signal } = options;
  if (!(waitMs >= 0)) {
    throw new ConfigError(`withThreadLease: waitMs must be a number of milliseconds, 0 or more, got ${waitMs}`, {
      code: "invalid_option",
    });
  }
  const taken = await take(leases, threadId, ttlMs, options);
  const stop = new AbortController();
  const done = new AbortController();
  const pass = (): void => stop.abort(signal?.reason);
  const lose = (cause?: unknown): void => stop.abort(new ThreadLeaseLostError(threadId, cause));
  const lost = (): boolean => stop.signal.reason instanceof ThreadLeaseLostError;
  if (signal?.aborted) pass();
  signal?.addEventListener("abort", pass, { once: true });
  const keeping = keep(leases, taken, ttlMs, done.signal, lose);
  try {
    const result = await run(stop.signal, taken.lease);
    if (lost()) throw stop.signal.reason;
    return result;
  } catch (error) {
    throw lost() ? stop.signal.reason : error; // what stopped the run says more than that it stopped
  } finally {
    done.abort();
    signal?.removeEventListener("abort", pass);
    await keeping;
    // from a store that cannot be reached now the lease goes by itself
    await within(ttlMs / 3, leases.release(taken.lease)).catch(() => undefined);
  }
}
