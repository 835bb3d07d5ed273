import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openMemory } from "../src/index.ts";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";
import { outcomeSuite } from "./outcome-suite.ts";
import { onPostgres } from "./postgres.ts";
import { race } from "./spawn.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-store-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const ttlMs = 60_000;

outcomeSuite("memory", (leaseMs) => openMemory({ leaseMs }).outcomes);
outcomeSuite("SQLite", (leaseMs) => openSqlite({ path: join(folder, "suite.db"), leaseMs }).outcomes);

describe("SQLite", () => {
  it("migrates once and shares keys fairly between processes that start together", async () => {
    const won = (await race(3, "./claimer.ts", "sqlite", join(folder, "race.db"))).flat();
    expect([...won].sort()).toEqual(Array.from({ length: 50 }, (_, i) => `key-${i}`).sort());
  }, 60_000);
  it("lets two stores of one process work on one file at once", async () => {
    const file = join(folder, "two.db");
    const stores = [openSqlite({ path: file }).outcomes, openSqlite({ path: file }).outcomes];
    const begin = Date.now();
    const claims = await Promise.all(
      stores.flatMap((store) => ["a", "b", "c"].map((key) => store.claim({ key, digest: "d", ttlMs }))),
    );
    expect(claims.filter(({ state }) => state === "yours")).toHaveLength(3);
    expect(claims.filter(({ state }) => state === "running")).toHaveLength(3);
    expect(Date.now() - begin).toBeLessThan(10_000); // each would wait for the other until its 15 seconds are over
    await stores[0]?.close();
    await stores[0]?.close();
    // the other one still has it
    expect((await stores[1]?.claim({ key: "a", digest: "d", ttlMs }))?.state).toBe("running");
    await expect(stores[0]?.claim({ key: "a", digest: "d", ttlMs })).rejects.toMatchObject({ code: "store_closed" });
    await stores[1]?.close();
  });
  it("keeps its file for the owner, and what it holds when it is opened again", async () => {
    const file = join(folder, "deep", "kept.db");
    const first = openSqlite({ path: file }).outcomes;
    const claim = await first.claim({ key: "k", digest: "d", ttlMs });
    if (claim.state !== "yours") throw new Error(claim.state);
    await first.finish(claim.lease, "kept", { ttlMs });
    await first.close();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const second = openSqlite({ path: file }).outcomes;
    expect(await second.claim({ key: "k", digest: "d", ttlMs })).toEqual({ state: "finished", outcome: "kept" });
    await second.close();
  });
});

describe("memory", () => {
  it("lets the oldest finished outcomes go first, and never what runs", async () => {
    const store = openMemory({ maxEntries: 3 }).outcomes;
    const running = await store.claim({ key: "running", digest: "d", ttlMs });
    expect(running.state).toBe("yours");
    for (const key of ["a", "b", "c"]) {
      const claim = await store.claim({ key, digest: "d", ttlMs });
      if (claim.state === "yours") await store.finish(claim.lease, key, { ttlMs });
    }
    expect((await store.claim({ key: "running", digest: "d", ttlMs })).state).toBe("running");
    expect((await store.claim({ key: "c", digest: "d", ttlMs })).state).toBe("finished");
    expect((await store.claim({ key: "a", digest: "d", ttlMs })).state).toBe("yours");
  });
  it("counts bytes", async () => {
    const store = openMemory({ maxBytes: 1_000 }).outcomes;
    await store.putBlob("one", "x".repeat(600), ttlMs);
    await store.putBlob("two", "y".repeat(600), ttlMs);
    expect([await store.getBlob("one"), (await store.getBlob("two"))?.length]).toEqual([undefined, 600]);
  });
  it("refuses limits that cannot work and options nobody reads", () => {
    expect(() => openMemory({ maxEntries: 0 })).toThrow("maxEntries must be positive, got 0");
    expect(() => openMemory({ maxEntires: 1 } as never)).toThrow('did you mean "maxEntries"?');
  });
});

onPostgres("outcomes", "test", (url, schema) => {
  outcomeSuite("Postgres", (leaseMs) => openPostgres({ url, schema, leaseMs }).outcomes);
  describe("Postgres", () => {
    it("migrates once and shares keys fairly between processes that start together", async () => {
      const won = (await race(3, "./claimer.ts", "postgres", url, `${schema}_race`)).flat();
      expect([...won].sort()).toEqual(Array.from({ length: 50 }, (_, i) => `key-${i}`).sort());
    }, 60_000);
    it("refuses a schema that is not one word", () => {
      expect(() => openPostgres({ url, schema: "a; drop" })).toThrow("must be one word");
    });
  });
});
