import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ContextStore, openMemory } from "../src/index.ts";

let serial = 0;
/** A session nobody used before, also when several stores share a database. */
const fresh = (): { server: string; owner: string; session: string } => ({
  server: "desk",
  owner: "digest",
  session: `s${process.pid}-${serial++}`,
});
const ttlMs = 60_000;

/** What every context store must do; run against each of them. */
export function contextSuite(name: string, open: () => ContextStore): void {
  describe(`contexts in ${name}`, () => {
    let store: ContextStore;
    beforeAll(() => {
      store = open();
    });
    afterAll(() => store.close());

    it("gives back the last one, with the time it ends", async () => {
      const key = fresh();
      expect(await store.get(key)).toBeUndefined();
      await store.put(key, { user_id: "alice" }, ttlMs);
      await store.put(key, { user_id: "alice", 部门: ["销售", null, 1.5], __proto__: null }, ttlMs);
      const kept = await store.get(key);
      expect(kept?.context).toEqual({ user_id: "alice", 部门: ["销售", null, 1.5] });
      expect(Math.abs((kept?.expiresAt ?? 0) - Date.now() - ttlMs)).toBeLessThan(5_000);
    });
    it("keeps owners, servers and sessions apart, however their names are cut", async () => {
      const key = fresh();
      await store.put(key, { n: 1 }, ttlMs);
      for (const other of [{ owner: "another" }, { server: "another" }, { session: `${key.session}x` }]) {
        expect(await store.get({ ...key, ...other })).toBeUndefined();
      }
      const cut = { server: "desk,digest", owner: key.session, session: "x" };
      expect(await store.get(cut)).toBeUndefined();
    });
    it("forgets what has expired, and sweeps it", async () => {
      const key = fresh();
      await store.put(key, { n: 1 }, 30);
      await sleep(60);
      expect(await store.get(key)).toBeUndefined();
      expect(await store.sweep()).toBeGreaterThanOrEqual(1);
      await store.put(key, { n: 2 }, ttlMs);
      expect((await store.get(key))?.context).toEqual({ n: 2 });
    });
    it("refuses what is too large to keep for every session", async () => {
      const refused = { name: "ConfigError", code: "context" };
      await expect(store.put(fresh(), { text: "x".repeat(70_000) }, ttlMs)).rejects.toMatchObject(refused);
      await expect(store.put({ ...fresh(), session: "x".repeat(2_000) }, {}, ttlMs)).rejects.toMatchObject(refused);
      await expect(store.get({ ...fresh(), session: "" })).rejects.toMatchObject(refused);
    });
  });
}

/** The bounds of the one that has no disk. */
export function memoryBounds(): void {
  describe("contexts in memory", () => {
    it("let the oldest go first", async () => {
      await using stores = openMemory({ maxEntries: 2 });
      const keys = [fresh(), fresh(), fresh()] as const;
      for (const key of keys) await stores.contexts.put(key, { n: 1 }, ttlMs);
      expect(await stores.contexts.get(keys[0])).toBeUndefined();
      expect(await stores.contexts.get(keys[2])).toBeDefined();
    });
  });
}
