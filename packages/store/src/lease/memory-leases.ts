import { checkLease, checkTtl, endOf, FENCE_KEPT_MS, type HeldLease, type LeaseStore, nextFence } from "./leases.ts";
import { createMemoryClock } from "./memory-clock.ts";

const SWEEP_EVERY_MS = 60_000;

/** Leases in the memory of this process: they keep apart what runs inside it. */
export function createMemoryLeases(): LeaseStore {
  const leases = new Map<string, HeldLease>();
  const clock = createMemoryClock();
  let swept = clock();

  /** The lease as it is kept, if it is still the given one. */
  const held = ({ name, holder, fence }: HeldLease): HeldLease | undefined => {
    const found = leases.get(name);
    return found?.holder === holder && found.fence === fence ? found : undefined;
  };

  function sweep(now: number): number {
    swept = now;
    const before = leases.size;
    for (const [name, { expiresAt }] of leases) if (expiresAt <= now - FENCE_KEPT_MS) leases.delete(name);
    return before - leases.size;
  }

  return {
    shared: false,
    async acquire(name, holder, ttlMs) {
      checkLease(name, holder, ttlMs);
      const now = clock();
      if (now - swept >= SWEEP_EVERY_MS) sweep(now);
      const before = leases.get(name);
      // one that was let go is free also by a clock that went back since
      const fence = nextFence(before?.holder === "" ? { ...before, expiresAt: 0 } : before, now);
      if (before && fence === undefined) return { state: "taken", lease: before };
      const lease = { name, holder, fence: fence ?? now, expiresAt: endOf(now, ttlMs) };
      leases.set(name, lease);
      return { state: "yours", lease };
    },
    async renew(lease, ttlMs) {
      checkTtl(ttlMs);
      const found = held(lease);
      if (!found) return undefined;
      const renewed = { ...found, expiresAt: endOf(clock(), ttlMs) };
      leases.set(lease.name, renewed);
      return renewed;
    },
    async find(name) {
      const found = leases.get(name);
      return found && found.expiresAt > clock() ? found : undefined;
    },
    async release(lease) {
      const found = held(lease);
      // kept without a holder: the next fence goes on from here
      if (found) leases.set(lease.name, { ...found, holder: "", expiresAt: clock() });
    },
    sweep: async () => sweep(clock()),
    close: async () => leases.clear(),
  };
}
