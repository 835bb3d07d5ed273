import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Claim, claimOrWait, LeaseLostError, type OutcomeStore } from "../src/index.ts";

const LEASE_MS = 400;
const ttlMs = 60_000;
let serial = 0;
/** A key nobody used before, also when several stores share a database. */
export const freshKey = (): string => `k${process.pid}-${serial++}`;

type Yours = Extract<Claim, { state: "yours" }>;
async function take(store: OutcomeStore, key: string, digest = "d"): Promise<Yours> {
  const claim = await store.claim({ key, digest, ttlMs });
  expect(claim.state).toBe("yours");
  return claim as Yours; // just checked
}

/** What every outcome store must do; run against each of them. */
export function outcomeSuite(name: string, open: (leaseMs: number) => OutcomeStore): void {
  describe(`outcomes in ${name}`, () => {
    let store: OutcomeStore;
    /** For what is about leases that lapse: on a busy machine the others must not. */
    let hasty: OutcomeStore;
    beforeAll(() => {
      store = open(60_000);
      hasty = open(LEASE_MS);
    });
    afterAll(async () => {
      await store.close();
      await hasty.close();
    });

    it("gives a key to one of many claims at once", async () => {
      const key = freshKey();
      const claims = await Promise.all(Array.from({ length: 12 }, () => store.claim({ key, digest: "d", ttlMs })));
      expect(claims.filter((claim) => claim.state === "yours")).toHaveLength(1);
      expect(claims.filter((claim) => claim.state === "running")).toHaveLength(11);
    });
    it("returns the outcome to the same digest and refuses another", async () => {
      const key = freshKey();
      const { lease } = await take(store, key);
      await store.finish(lease, { n: [1, null, "ü"] }, { ttlMs });
      expect(await store.claim({ key, digest: "d", ttlMs })).toEqual({
        state: "finished",
        outcome: { n: [1, null, "ü"] },
      });
      expect(await store.claim({ key, digest: "e", ttlMs })).toEqual({ state: "other" });
    });
    it("lets a second claim wait for the first", async () => {
      const key = freshKey();
      const { lease } = await take(store, key);
      const waiting = claimOrWait(store, { key, digest: "d", ttlMs }, { waitMs: 5_000 });
      await sleep(30);
      await store.finish(lease, "done", { ttlMs });
      expect(await waiting).toEqual({ state: "finished", outcome: "done" });
    });
    it("stops waiting at its limit, and when it is aborted", async () => {
      const key = freshKey();
      const { lease } = await take(store, key);
      expect(await claimOrWait(store, { key, digest: "d", ttlMs }, { waitMs: 20 })).toEqual({ state: "running" });
      const abort = new AbortController();
      const waiting = claimOrWait(store, { key, digest: "d", ttlMs }, { waitMs: 5_000, signal: abort.signal });
      abort.abort();
      await expect(waiting).rejects.toThrow();
      await store.release(lease);
    });
    it("hands a lapsed lease over with what was recorded, and shuts the late one out", async () => {
      const key = freshKey();
      const { lease: late } = await take(hasty, key);
      await hasty.record(late, "a", 1);
      await hasty.record(late, "b", [true]);
      await hasty.record(late, "a", 2);
      const next = await claimOrWait(hasty, { key, digest: "d", ttlMs }, { waitMs: 5_000 });
      expect(next).toMatchObject({ state: "yours", progress: { a: 2, b: [true] } });
      const { lease } = next as Yours; // just checked
      expect(lease.fence).toBeGreaterThan(late.fence);
      await expect(hasty.record(late, "c", 1)).rejects.toBeInstanceOf(LeaseLostError);
      await expect(hasty.begin(late)).rejects.toBeInstanceOf(LeaseLostError);
      await expect(hasty.finish(late, "late", { ttlMs })).rejects.toBeInstanceOf(LeaseLostError);
      expect(await hasty.renew(late)).toBe(false);
      await hasty.release(late);
      await hasty.finish(lease, "right", { ttlMs });
      expect(await hasty.claim({ key, digest: "d", ttlMs })).toEqual({ state: "finished", outcome: "right" });
    });
    it("keeps a lease that is renewed", async () => {
      const key = freshKey();
      const { lease } = await take(hasty, key);
      for (let i = 0; i < 6; i++) {
        await sleep(LEASE_MS / 4);
        expect(await hasty.renew(lease)).toBe(true);
      }
      expect((await hasty.claim({ key, digest: "d", ttlMs })).state).toBe("running");
    });
    it("gives a key that was let go before any effect to another digest, and after one only to the same", async () => {
      const key = freshKey();
      const first = await take(store, key, "d");
      expect(await store.claim({ key, digest: "e", ttlMs })).toEqual({ state: "running" });
      await store.release(first.lease);
      const second = await take(store, key, "e");
      await store.begin(second.lease);
      expect(await store.claim({ key, digest: "d", ttlMs })).toEqual({ state: "other" });
      await store.record(second.lease, "step", "x");
      await store.release(second.lease);
      expect(await store.claim({ key, digest: "d", ttlMs })).toEqual({ state: "other" });
      expect((await take(store, key, "e")).progress).toEqual({ step: "x" });
    });
    it("gives other finished keys the same outcome in the same moment", async () => {
      const [call, state] = [freshKey(), freshKey()];
      const first = await take(store, call, "args");
      await store.finish(first.lease, "asked", { ttlMs });
      const second = await take(store, state, "answers");
      await store.finish(second.lease, "bought", { ttlMs, also: [call, "nobody has this key"] });
      expect(await store.claim({ key: call, digest: "args", ttlMs })).toEqual({ state: "finished", outcome: "bought" });
    });
    it("forgets what has expired", async () => {
      const key = freshKey();
      const { lease } = await take(store, key);
      await store.record(lease, "old", 1);
      await store.finish(lease, "old", { ttlMs: -1 });
      expect((await take(store, key, "another")).progress).toEqual({});
      const gone = freshKey();
      await store.finish((await take(store, gone)).lease, "old", { ttlMs: -1 });
      await store.putBlob(gone, "text", -1);
      expect(await store.getBlob(gone)).toBeUndefined();
      expect(await store.sweep()).toBeGreaterThanOrEqual(2);
    });
    it("keeps texts by id", async () => {
      const id = freshKey();
      expect(await store.getBlob(id)).toBeUndefined();
      await store.putBlob(id, "x".repeat(200_000), ttlMs);
      await store.putBlob(id, "second", ttlMs);
      expect(await store.getBlob(id)).toBe("second");
    });
  });
}
