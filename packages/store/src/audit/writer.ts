import { processHolder } from "../lease/holder.ts";
import type { HeldLease, LeaseStore } from "../lease/leases.ts";

/** The name of the lease that says that a writer is there. */
const leaseOf = (writer: string): string => `audit:${writer}`;

/** Who of these writers is gone: nobody renews their lease, or they are known to be dead. */
export async function goneWriters(
  leases: LeaseStore,
  writers: readonly string[],
  isGone?: (writer: string) => boolean,
): Promise<readonly string[]> {
  const gone: string[] = [];
  for (const writer of writers) {
    if (isGone?.(writer) || (await leases.find(leaseOf(writer))) === undefined) gone.push(writer);
  }
  return gone;
}

/**
 * Says for as long as it lives that the calls it opened may still run: one lease for all of them, whatever they wait for, so that
 * a crash is noticed when it runs out, and a call that takes days is not taken for one.
 */
export interface Writer {
  readonly name: string;
  /** Resolves when the lease holds for a while: before an intent is written. */
  ready(): Promise<void>;
  /** Renews from now on, while calls are open, or stops. */
  keep(open: boolean): void;
  close(): Promise<void>;
}

/** @param leaseMs milliseconds after which the calls of a crashed process are given up; renewed every third */
export function createWriter(leases: LeaseStore, leaseMs: number): Writer {
  const name = processHolder();
  const everyMs = Math.max(1, leaseMs / 3);
  let lease: HeldLease | undefined;
  let renewedAt = 0;
  let timer: NodeJS.Timeout | undefined;
  let renewing: Promise<void> | undefined;

  async function renew(): Promise<void> {
    const now = performance.now();
    lease = lease && (await leases.renew(lease, leaseMs));
    lease ??= (await leases.acquire(leaseOf(name), name, leaseMs)).lease; // its name is nobody else's
    renewedAt = now;
  }
  /** One renewal at a time. */
  function renewed(): Promise<void> {
    renewing ??= renew().finally(() => {
      renewing = undefined;
    });
    return renewing;
  }

  return {
    name,
    async ready() {
      if (!lease || performance.now() - renewedAt > everyMs) await renewed();
    },
    keep(open) {
      if (open === (timer !== undefined)) return;
      clearInterval(timer);
      timer = undefined;
      if (!open) return;
      // fails while the database is away: tried again at the next turn
      timer = setInterval(() => void renewed().catch(() => undefined), Math.min(everyMs, 2 ** 31 - 1));
      timer.unref(); // what runs keeps the process alive, not this
    },
    async close() {
      clearInterval(timer);
      await renewing?.catch(() => undefined);
      if (lease) await leases.release(lease).catch(() => undefined); // else it runs out
      await leases.close();
    },
  };
}
