import type { Queries, SqlSide } from "../sql/side.ts";
import { checkLease, checkTtl, endOf, FENCE_KEPT_MS, type HeldLease, type LeaseStore, nextFence } from "./leases.ts";

const SWEEP_EVERY_MS = 60_000;

/** The lease store over any of the databases: one set of queries. */
export function createSqlLeases(side: SqlSide): LeaseStore {
  let swept = Date.now();

  /** Whoever comes by cleans up: no timer keeps a process alive for it. */
  async function sweep(): Promise<void> {
    if (Date.now() - swept < SWEEP_EVERY_MS) return;
    swept = Date.now();
    const db = await side.db();
    const old = (await side.now(db)) - FENCE_KEPT_MS;
    await db.deleteFrom("tenon_leases").where("expires_at", "<=", old).execute();
  }

  /** Changes the lease if it still is the given one, and says whether it was. */
  async function change(db: Queries, lease: HeldLease, values: { holder?: string; expires_at: number }) {
    const { numUpdatedRows } = await db
      .updateTable("tenon_leases")
      .set(values)
      .where("name", "=", lease.name)
      .where("fence", "=", lease.fence)
      .where("holder", "=", lease.holder)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  return {
    shared: true,
    async acquire(name, holder, ttlMs) {
      checkLease(name, holder, ttlMs);
      await sweep();
      const db = await side.db();
      return db.transaction().execute(async (trx) => {
        // makes a row to lock when there is none; of two inserts at once one waits for the other
        await trx
          .insertInto("tenon_leases")
          .values({ name, holder: "", fence: 0, expires_at: 0 })
          .onConflict((conflict) => conflict.column("name").doNothing())
          .execute();
        const query = trx.selectFrom("tenon_leases").selectAll().where("name", "=", name);
        const row = await (side.lockRows ? query.forUpdate() : query).executeTakeFirstOrThrow();
        const now = await side.now(trx); // after the lock: a lease must not run while its taker still waits for the row
        const before = { fence: Number(row.fence), expiresAt: Number(row.expires_at) };
        const fence = nextFence(before, now);
        if (fence === undefined) return { state: "taken" as const, lease: { name, holder: row.holder, ...before } };
        const lease = { name, holder, fence, expiresAt: endOf(now, ttlMs) };
        await trx
          .updateTable("tenon_leases")
          .set({ holder, fence, expires_at: lease.expiresAt })
          .where("name", "=", name)
          .execute();
        return { state: "yours" as const, lease };
      });
    },
    async renew(lease, ttlMs) {
      checkTtl(ttlMs);
      const db = await side.db();
      const expiresAt = endOf(await side.now(db), ttlMs);
      return (await change(db, lease, { expires_at: expiresAt })) ? { ...lease, expiresAt } : undefined;
    },
    async find(name) {
      const db = await side.db();
      const row = await db.selectFrom("tenon_leases").selectAll().where("name", "=", name).executeTakeFirst();
      const expiresAt = Number(row?.expires_at);
      return row && expiresAt > (await side.now(db))
        ? { name, holder: row.holder, fence: Number(row.fence), expiresAt }
        : undefined;
    },
    async release(lease) {
      const db = await side.db();
      // kept without a holder: the next fence goes on from here
      await change(db, lease, { holder: "", expires_at: await side.now(db) });
    },
    close: () => side.close(),
  };
}
