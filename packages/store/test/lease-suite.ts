import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HeldLease, LeaseStore, Stores } from "../src/index.ts";

const LONG_MS = 60_000;
const SHORT_MS = 300;
let serial = 0;
/** A name nobody used before, also when several stores share a database. */
const freshName = (): string => `n${process.pid}-${serial++}`;

async function take(leases: LeaseStore, name: string, holder: string, ttlMs = LONG_MS): Promise<HeldLease> {
  const { state, lease } = await leases.acquire(name, holder, ttlMs);
  expect(state).toBe("yours");
  return lease;
}

/** Asks until the name is free. */
export async function takeOver(leases: LeaseStore, name: string, holder: string): Promise<HeldLease> {
  const limit = Date.now() + 15_000;
  for (;;) {
    const { state, lease } = await leases.acquire(name, holder, LONG_MS);
    if (state === "yours") return lease;
    if (Date.now() > limit) throw new Error(`${name} is still held by ${lease.holder}`);
    await sleep(20);
  }
}

/** What every lease store must do; run against each of them. */
export function leaseSuite(kind: string, open: () => Stores): void {
  describe(`leases in ${kind}`, () => {
    let stores: Stores;
    let leases: LeaseStore;
    beforeAll(() => {
      stores = open();
      leases = stores.leases;
    });
    afterAll(() => stores.close());

    it("give a name to one of many that ask at once, and tell the others who has it and until when", async () => {
      const name = freshName();
      const asked = await Promise.all(Array.from({ length: 12 }, (_, i) => leases.acquire(name, `h${i}`, LONG_MS)));
      const [winner, ...more] = asked.filter(({ state }) => state === "yours");
      expect(more).toEqual([]);
      const others = asked.filter(({ state }) => state === "taken");
      expect(others).toHaveLength(11);
      for (const { lease } of others) expect(lease).toEqual(winner?.lease);
      expect(winner?.lease).toMatchObject({ name, holder: expect.stringMatching(/^h\d+$/), fence: expect.any(Number) });
      expect(winner?.lease.expiresAt).toBeGreaterThan(Date.now());
    });
    it("say who has a name, and that nobody has one that is free or was let go", async () => {
      const name = freshName();
      expect(await leases.find(name)).toBeUndefined();
      const lease = await take(leases, name, "me");
      expect(await leases.find(name)).toEqual(lease);
      await leases.release(lease);
      expect(await leases.find(name)).toBeUndefined();
    });
    it("that were let go are free also by a clock that has gone back", async () => {
      const name = freshName();
      const first = await take(leases, name, "me");
      await leases.release(first);
      const now = Date.now;
      Date.now = () => now() - 3_600_000; // Postgres has a clock of its own
      try {
        expect((await take(leases, name, "you")).fence).toBeGreaterThan(first.fence);
      } finally {
        Date.now = now;
      }
    });
    it("keep two pieces of work of the same holder apart", async () => {
      const name = freshName();
      await take(leases, name, "me");
      expect(await leases.acquire(name, "me", LONG_MS)).toMatchObject({ state: "taken", lease: { holder: "me" } });
    });
    it("are free again when released, with a higher fence each time", async () => {
      const name = freshName();
      const fences: number[] = [];
      for (const holder of ["a", "b", "a", "c"]) {
        const lease = await take(leases, name, holder);
        fences.push(lease.fence);
        await leases.release(lease);
      }
      expect(new Set(fences).size).toBe(4);
      expect([...fences].sort((one, other) => one - other)).toEqual(fences);
    });
    it("lapse when nobody renews them, and shut the late holder out", async () => {
      const name = freshName();
      const late = await take(leases, name, "late", SHORT_MS);
      const next = await takeOver(leases, name, "next");
      expect(next.fence).toBeGreaterThan(late.fence);
      expect(await leases.renew(late, LONG_MS)).toBeUndefined();
      await leases.release(late);
      expect(await leases.acquire(name, "third", LONG_MS)).toMatchObject({ state: "taken", lease: { holder: "next" } });
    });
    it("stay with a holder that renews them", async () => {
      const name = freshName();
      let lease = await take(leases, name, "me", 50);
      const renewed = await leases.renew(lease, LONG_MS); // also when the 50 ms are over: nobody else came
      expect(renewed).toMatchObject({ fence: lease.fence, holder: "me" });
      if (renewed) lease = renewed;
      await sleep(60);
      expect(await leases.acquire(name, "other", LONG_MS)).toMatchObject({ state: "taken", lease });
      await leases.release(lease);
      expect(await leases.renew(lease, LONG_MS)).toBeUndefined();
    });
    it("can be taken from a holder that is known to be dead, by releasing what was found", async () => {
      const name = freshName();
      await take(leases, name, "dead");
      await leases.release((await leases.acquire(name, "heir", LONG_MS)).lease);
      await take(leases, name, "heir");
    });
    it("last whole milliseconds, also when a part of one is asked for", async () => {
      const { state, lease } = await leases.acquire(freshName(), "me", LONG_MS / 7);
      expect([state, Number.isInteger(lease.expiresAt)]).toEqual(["yours", true]);
      expect(Number.isInteger((await leases.renew(lease, LONG_MS / 7))?.expiresAt)).toBe(true);
    });
    it("know nothing of each other's names", async () => {
      const [one, two] = [freshName(), freshName()];
      await leases.release(await take(leases, one, "me"));
      await take(leases, two, "me");
      await take(leases, one, "you");
    });
    it("refuse what cannot be kept, and say why", async () => {
      await expect(leases.acquire("", "me", LONG_MS)).rejects.toMatchObject({ code: "lease" });
      await expect(leases.acquire("n".repeat(1_001), "me", LONG_MS)).rejects.toThrow("given 1001 characters");
      await expect(leases.acquire(freshName(), "", LONG_MS)).rejects.toThrow("The holder of a lease");
      await expect(leases.acquire(freshName(), "me", 0)).rejects.toThrow("positive number of milliseconds, given 0");
      await expect(leases.acquire(freshName(), "me", Number.NaN)).rejects.toMatchObject({ code: "lease" });
      await expect(leases.acquire(freshName(), "me", 2 ** 53)).rejects.toMatchObject({ code: "lease" });
    });
    it("stand beside outcomes under one owner", async () => {
      const other = open();
      await other.outcomes.close();
      await take(other.leases, freshName(), "me"); // still there
      await other.close();
      await other.close();
    });
  });
}
