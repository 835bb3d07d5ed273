import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError, type Json, TenonError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";

/** What a claim is about. */
export interface ClaimRequest {
  /** Names the effect: an answered request state, an idempotency key of a caller. */
  readonly key: string;
  /** Digest of what the key was used with: the answers, the arguments. The same key with another digest is another effect. */
  readonly digest: string;
  /** Milliseconds the record is kept; counted anew by {@link OutcomeStore.finish}. */
  readonly ttlMs: number;
}

/** The right to work on a key, until the lease lapses. The fence grows with every taker, so a late one cannot write. */
export interface Lease {
  readonly key: string;
  readonly fence: number;
}

/** What a claim found. */
export type Claim =
  /** Nobody works on it: do, with what an earlier taker finished before it crashed or let go. */
  | { readonly state: "yours"; readonly lease: Lease; readonly progress: Readonly<Record<string, Json>> }
  /** Somebody works on it now. */
  | { readonly state: "running" }
  | { readonly state: "finished"; readonly outcome: Json }
  /** The key was used with another digest, and effects may have happened. */
  | { readonly state: "other" };

/**
 * Remembers effects by key: who works on one now, what was finished before a crash, and the outcome. One process may use the
 * in-memory version, processes of one machine share SQLite, machines share Postgres.
 */
export interface OutcomeStore {
  /** Whether other processes see the same records. */
  readonly shared: boolean;
  /** Milliseconds a lease lasts unless it is renewed: how long a crashed taker blocks its key. */
  readonly leaseMs: number;
  /** Takes the key, or says what became of it. Atomic: of any number of claims at once, one is told `yours`. */
  claim(request: ClaimRequest): Promise<Claim>;
  /**
   * Notes that effects may happen from here on: until then the key may still be taken with another digest.
   * @throws LeaseLostError
   */
  begin(lease: Lease): Promise<void>;
  /** Records one finished part; the next taker reads it as progress. @throws LeaseLostError */
  record(lease: Lease, name: string, value: Json): Promise<void>;
  /** Extends the lease by `leaseMs`; false when another taker has it. */
  renew(lease: Lease): Promise<boolean>;
  /**
   * Keeps the outcome and ends the lease.
   * @param options.also keys of finished records that get the same outcome in the same moment
   * @throws LeaseLostError
   */
  finish(lease: Lease, outcome: Json, options: { ttlMs: number; also?: readonly string[] }): Promise<void>;
  /** Ends the lease without an outcome; progress stays. Does nothing when the lease is lost. */
  release(lease: Lease): Promise<void>;
  /** Keeps a text; the same id replaces it. */
  putBlob(id: string, text: string, ttlMs: number): Promise<void>;
  /** Undefined when it was never kept or has expired. */
  getBlob(id: string): Promise<string | undefined>;
  /** Deletes what has expired and returns how many records; stores also do this on their own now and then. */
  sweep(): Promise<number>;
  /** Ends this store; what it holds stays where it is kept. */
  close(): Promise<void>;
}

const SILENT =
  "this process was silent for longer than the lease lasts, and another one took the work over. Keep long computations off " +
  "the event loop, or make leaseMs longer";

/** The lease is not this taker's any more: what it did after losing it is not recorded. */
export class LeaseLostError extends TenonError {
  /** @param reason how it was lost, where that is known; otherwise that somebody else has taken the work over */
  constructor(lease: Pick<Lease, "key">, reason: string = SILENT) {
    super(`The lease on "${lease.key}" was lost: ${reason}`, {
      code: "lease_lost",
      retryable: true,
      maybeExecuted: true,
      data: { key: lease.key },
    });
  }
}

/** Fifteen seconds: five missed renewals, and short enough that a retry after a crash still waits for it. */
export const LEASE_MS = 15_000;

/** @throws ConfigError `code: "limit"` for a time that ends at once or never */
export function checkLeaseMs(leaseMs: number, where: string): number {
  if (Number.isFinite(leaseMs) && leaseMs > 0) return leaseMs;
  throw new ConfigError(`${where}: leaseMs must be positive, got ${leaseMs}`, { code: "limit" });
}

const FIRST_POLL_MS = 5;
const LONGEST_POLL_MS = 250;

/**
 * Claims a key; while another taker runs, waits for its outcome, or takes over when its lease lapses.
 * @param options.waitMs how long to wait at most; then the answer is `running`
 * @throws what `signal` was aborted with
 */
export async function claimOrWait(
  store: OutcomeStore,
  request: ClaimRequest,
  options: { waitMs: number; signal?: AbortSignal },
): Promise<Claim> {
  checkOptions(options, ["waitMs", "signal"], "claimOrWait(store, request, options)");
  const until = performance.now() + options.waitMs;
  let pause = FIRST_POLL_MS;
  for (;;) {
    options.signal?.throwIfAborted();
    const claim = await store.claim(request);
    if (claim.state !== "running" || performance.now() >= until) return claim;
    await sleep(pause, undefined, options.signal ? { signal: options.signal } : {});
    pause = Math.min(pause * 1.6, LONGEST_POLL_MS);
  }
}

/** What a store knows of a key when a claim arrives. */
export interface ClaimedBefore {
  readonly digest: string;
  readonly status: "free" | "running" | "finished";
  readonly begun: boolean;
  readonly fence: number;
  readonly leaseUntil: number;
  readonly expiresAt: number;
}

/**
 * The rule of claims, the same for every store.
 * @param before the record of the key, if there is one
 * @returns the fence of the new lease and whether earlier progress is valid, or why the key cannot be taken
 */
export function decideClaim(
  before: ClaimedBefore | undefined,
  digest: string,
  now: number,
): { take: { fence: number; keepProgress: boolean } } | "running" | "finished" | "other" {
  // the clock starts the fence, so that it grows even when a swept key comes back
  if (!before || before.expiresAt <= now) return { take: { fence: now, keepProgress: false } };
  const same = before.digest === digest;
  if (before.status === "finished") return same ? "finished" : "other";
  if (!same && before.begun) return "other";
  if (before.status === "running" && before.leaseUntil > now) return "running";
  return { take: { fence: Math.max(before.fence + 1, now), keepProgress: same } };
}
