import { type RawBuilder, sql } from "kysely";
import { withRetry } from "../sql/retry.ts";
import type { Queries, SqlSide } from "../sql/side.ts";
import { checkLease, checkTtl, endOf, FENCE_KEPT_MS, type HeldLease, type LeaseStore } from "./leases.ts";

const SWEEP_EVERY_MS = 60_000;

/**
 * Takes the name when nobody has it, in one statement: the rule of `nextFence`, read by the database's clock once the row is
 * locked, since a lease must not run while its taker still waits for the row.
 */
export async function takeLease(
  side: SqlSide,
  db: Queries,
  { name, holder, ttlMs }: { readonly name: string; readonly holder: string; readonly ttlMs: number },
): Promise<HeldLease | undefined> {
  const fence = sql<number>`case when ${sql.ref("tenon_leases.fence")} >= ${side.clock()} then ${sql.ref("tenon_leases.fence")} + 1 else ${side.clock()} end`;
  const expires_at = sql<number>`${side.clock()} + ${sql.lit(Math.ceil(ttlMs))}`;
  const row = await db
    .insertInto("tenon_leases")
    .values({ name, holder, fence: side.clock(), expires_at })
    .onConflict((conflict) =>
      conflict
        .column("name")
        .doUpdateSet({ holder, fence, expires_at })
        // one that was let go is free also by a clock that went back since
        .where(({ or, eb }) =>
          or([eb("tenon_leases.holder", "=", ""), eb("tenon_leases.expires_at", "<=", side.clock())]),
        ),
    )
    .returning(["fence", "expires_at"])
    .executeTakeFirst();
  return row && { name, holder, fence: Number(row.fence), expiresAt: Number(row.expires_at) };
}

/** Extends or ends the lease if it still is the given one, and says whether it was. */
export async function changeLease(
  db: Queries,
  lease: Pick<HeldLease, "name" | "holder" | "fence">,
  values: { holder?: string; expires_at: number | RawBuilder<number> },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("tenon_leases")
    .set(values)
    .where("name", "=", lease.name)
    .where("fence", "=", lease.fence)
    .where("holder", "=", lease.holder)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Lets go. The row is kept without a holder: the next fence goes on from here. */
export const releaseLease = (side: SqlSide, db: Queries, lease: Parameters<typeof changeLease>[1]): Promise<boolean> =>
  changeLease(db, lease, { holder: "", expires_at: side.clock() });

/** The lease store over any of the databases: one set of queries. */
export function createSqlLeases(side: SqlSide): LeaseStore {
  let swept = performance.now();

  async function sweep(): Promise<number> {
    swept = performance.now();
    const db = await side.db();
    const old = (await side.now(db)) - FENCE_KEPT_MS;
    const { numDeletedRows } = await db.deleteFrom("tenon_leases").where("expires_at", "<=", old).executeTakeFirst();
    return Number(numDeletedRows);
  }

  return {
    shared: true,
    async acquire(name, holder, ttlMs) {
      checkLease(name, holder, ttlMs);
      // whoever comes by cleans up: no timer keeps a process alive for it
      if (performance.now() - swept >= SWEEP_EVERY_MS) await sweep();
      const db = await side.db();
      for (;;) {
        const lease = await takeLease(side, db, { name, holder, ttlMs });
        if (lease) return { state: "yours", lease };
        const row = await db.selectFrom("tenon_leases").selectAll().where("name", "=", name).executeTakeFirst();
        if (!row || row.holder === "") continue; // forgotten or let go between the two
        const taken = { name, holder: row.holder, fence: Number(row.fence), expiresAt: Number(row.expires_at) };
        return { state: "taken", lease: taken };
      }
    },
    async renew(lease, ttlMs) {
      checkTtl(ttlMs);
      const db = await side.db();
      const renew = async (): Promise<HeldLease | undefined> => {
        const expiresAt = endOf(await side.now(db), ttlMs);
        return (await changeLease(db, lease, { expires_at: expiresAt })) ? { ...lease, expiresAt } : undefined;
      };
      return withRetry(renew, { idempotent: true });
    },
    async find(name) {
      const db = await side.db();
      const row = await db
        .selectFrom("tenon_leases")
        .selectAll()
        .where("name", "=", name)
        .where("expires_at", ">", side.clock())
        .executeTakeFirst();
      return row && { name, holder: row.holder, fence: Number(row.fence), expiresAt: Number(row.expires_at) };
    },
    async release(lease) {
      await releaseLease(side, await side.db(), lease);
    },
    sweep,
    close: () => side.close(),
  };
}
