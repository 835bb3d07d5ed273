import { ConfigError } from "@tenon/core";

/** Who has a name, and until when. */
export interface HeldLease {
  readonly name: string;
  /** Says who holds it, for people and logs: a machine and a process, for example. */
  readonly holder: string;
  /**
   * Grows with every taker of the name. Send it along with what the lease protects, so that the other side can refuse a taker
   * that was silent for too long and does not know yet.
   */
  readonly fence: number;
  /**
   * Milliseconds since 1970, by the clock of the store: the database's on Postgres; on SQLite one that all processes of the machine
   * share, which nobody can set and which may differ from the time of day.
   */
  readonly expiresAt: number;
}

/** What came of asking for a name. `taken` says who has it; releasing that lease takes it from a holder known to be dead. */
export type Acquired = { readonly state: "yours" | "taken"; readonly lease: HeldLease };

/**
 * One holder per name, until it lets go or falls silent: a thread somebody works on, a job that runs. One process may use the
 * in-memory version, processes of one machine share SQLite, machines share Postgres.
 *
 * @example
 * const { state, lease } = await leases.acquire("nightly-report", "worker-1", 30_000);
 * if (state === "taken") console.log(`${lease.holder} is at it until ${new Date(lease.expiresAt)}`);
 */
export interface LeaseStore {
  /** Whether other processes see the same leases. */
  readonly shared: boolean;
  /**
   * Takes the name when nobody has it. Atomic: of any number that ask at once, one is told `yours`. A holder that asks again is
   * told `taken` as well: two pieces of work of one process exclude each other too.
   * @param ttlMs milliseconds it lasts unless it is renewed: how long a crashed holder blocks the name
   * @throws ConfigError `code: "lease"` for an empty name or holder, one above 1,000 characters, or a time that is not positive
   */
  acquire(name: string, holder: string, ttlMs: number): Promise<Acquired>;
  /**
   * Extends the lease to `ttlMs` from now. Works as long as nobody else has taken the name, also when the time was up.
   * @returns the lease with its new end; undefined when it is lost or was released
   */
  renew(lease: HeldLease, ttlMs: number): Promise<HeldLease | undefined>;
  /** Who has the name now; undefined when nobody has. */
  find(name: string): Promise<HeldLease | undefined>;
  /** Lets go. Does nothing when the lease is lost. */
  release(lease: HeldLease): Promise<void>;
  /** Forgets names whose last lease ended more than a day ago and returns how many; stores also do this on their own now and then. */
  sweep(): Promise<number>;
  /** Ends this store; leases that are held lapse when their time is up. */
  close(): Promise<void>;
}

const LONGEST = 1_000;

/** Refuses what no store can keep. */
export function checkLease(name: string, holder: string, ttlMs: number): void {
  for (const [what, text] of Object.entries({ name, holder })) {
    if (typeof text === "string" && text !== "" && text.length <= LONGEST) continue;
    const given = typeof text === "string" ? `${text.length} characters` : typeof text;
    throw new ConfigError(`The ${what} of a lease is a text of 1 to ${LONGEST} characters, given ${given}`, {
      code: "lease",
    });
  }
  checkTtl(ttlMs);
}

/** A later end no Date can say. */
const LONGEST_MS = 1e15;

/** Refuses times that end at once or never. */
export function checkTtl(ttlMs: number): void {
  if (ttlMs > 0 && ttlMs <= LONGEST_MS) return;
  throw new ConfigError(
    `The time of a lease is a positive number of milliseconds, given ${ttlMs} (at most ${LONGEST_MS})`,
    { code: "lease" },
  );
}

/** The whole millisecond at which `ttlMs` from `now` are over: Postgres keeps no parts of one. */
export function endOf(now: number, ttlMs: number): number {
  return Math.ceil(now + ttlMs);
}

/** How long a name is remembered after its last lease, so that its fence goes on from there even if a clock goes back. */
export const FENCE_KEPT_MS = 24 * 60 * 60 * 1_000;

/**
 * The rule of leases, the same for every store.
 * @returns the fence of the new lease; undefined when the name is taken
 */
export function nextFence(
  before: { readonly fence: number; readonly expiresAt: number } | undefined,
  now: number,
): number | undefined {
  // the clock starts the fence, so that it grows even when a forgotten name comes back
  if (!before) return now;
  return before.expiresAt > now ? undefined : Math.max(before.fence + 1, now);
}
