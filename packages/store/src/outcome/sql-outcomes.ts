import type { Json } from "@tenon/core";
import type { Transaction } from "kysely";
import { endOf } from "../lease/leases.ts";
import type { Queries, SqlSide, Tables } from "../sql/side.ts";
import { type ClaimedBefore, decideClaim, type Lease, LeaseLostError, type OutcomeStore } from "./outcomes.ts";

const SWEEP_EVERY_MS = 60_000;

/** The outcome store over any of the databases: one set of queries. */
export function createSqlOutcomes(side: SqlSide, leaseMs: number): OutcomeStore {
  let swept = performance.now();

  const write = async <T>(work: (trx: Transaction<Tables>) => Promise<T>): Promise<T> =>
    (await side.db()).transaction().execute(work);

  async function find(trx: Queries, key: string) {
    const query = trx.selectFrom("tenon_outcomes").selectAll().where("key", "=", key);
    return (side.lockRows ? query.forUpdate() : query).executeTakeFirst();
  }

  const parts = (trx: Queries, key: string) => trx.deleteFrom("tenon_outcome_parts").where("key", "=", key).execute();

  /** Changes the record if the lease still holds, and says whether it did. */
  async function change(
    trx: Queries,
    { key, fence }: Lease,
    values: Partial<{
      status: ClaimedBefore["status"];
      begun: number;
      lease_until: number;
      expires_at: number;
      outcome: string;
    }>,
  ): Promise<boolean> {
    const result = await trx
      .updateTable("tenon_outcomes")
      .set(values)
      .where("key", "=", key)
      .where("fence", "=", fence)
      .where("status", "=", "running")
      .executeTakeFirst();
    return result.numUpdatedRows > 0n;
  }

  async function mustChange(trx: Queries, lease: Lease, values: Parameters<typeof change>[2]): Promise<void> {
    if (!(await change(trx, lease, values))) throw new LeaseLostError(lease);
  }

  async function sweep(): Promise<number> {
    swept = performance.now();
    return write(async (trx) => {
      const now = await side.now(trx);
      const gone = await trx.deleteFrom("tenon_outcomes").where("expires_at", "<=", now).executeTakeFirst();
      const blobs = await trx.deleteFrom("tenon_blobs").where("expires_at", "<=", now).executeTakeFirst();
      await trx
        .deleteFrom("tenon_outcome_parts")
        .where("key", "not in", (outcomes) => outcomes.selectFrom("tenon_outcomes").select("tenon_outcomes.key"))
        .execute();
      return Number(gone.numDeletedRows + blobs.numDeletedRows);
    });
  }

  return {
    shared: true,
    leaseMs,
    async claim({ key, digest, ttlMs }) {
      // whoever comes by cleans up: no timer keeps a process alive for it
      if (performance.now() - swept > SWEEP_EVERY_MS) await sweep();
      return write(async (trx) => {
        const empty = { key, digest, begun: 0, fence: 0, lease_until: 0, expires_at: 0, outcome: null };
        // makes a row to lock when there is none, expired for whoever looks; of two inserts at once one waits for the other
        await trx
          .insertInto("tenon_outcomes")
          .values({ ...empty, status: "free" })
          .onConflict((conflict) => conflict.column("key").doNothing())
          .execute();
        const row = await find(trx, key);
        if (!row) return { state: "running" as const }; // swept between the two queries: the caller tries again
        const now = await side.now(trx); // after the lock: a lease must not run while its taker still waits for the row
        const before = {
          digest: row.digest,
          status: row.status,
          begun: row.begun === 1,
          fence: Number(row.fence),
          leaseUntil: Number(row.lease_until),
          expiresAt: Number(row.expires_at),
        };
        const decision = decideClaim(before, digest, now);
        if (decision === "finished") {
          return { state: "finished" as const, outcome: JSON.parse(row.outcome ?? "null") as Json }; // finish() wrote it
        }
        if (typeof decision === "string") return { state: decision };
        const { fence, keepProgress } = decision.take;
        if (!keepProgress) await parts(trx, key);
        const progress = await trx
          .selectFrom("tenon_outcome_parts")
          .select(["name", "value"])
          .where("key", "=", key)
          .execute();
        await trx
          .updateTable("tenon_outcomes")
          .set({
            ...empty,
            status: "running",
            begun: keepProgress && before.begun ? 1 : 0,
            fence,
            lease_until: endOf(now, leaseMs),
            expires_at: endOf(now, ttlMs),
          })
          .where("key", "=", key)
          .execute();
        return {
          state: "yours" as const,
          lease: { key, fence },
          progress: Object.fromEntries(progress.map(({ name, value }) => [name, JSON.parse(value) as Json])), // record() wrote it
        };
      });
    },
    async begin(lease) {
      await mustChange(await side.db(), lease, { begun: 1 });
    },
    async record(lease, name, value) {
      const text = JSON.stringify(value);
      await write(async (trx) => {
        await mustChange(trx, lease, { begun: 1 });
        await trx
          .insertInto("tenon_outcome_parts")
          .values({ key: lease.key, name, value: text })
          .onConflict((conflict) => conflict.columns(["key", "name"]).doUpdateSet({ value: text }))
          .execute();
      });
    },
    async renew(lease) {
      const db = await side.db();
      return change(db, lease, { lease_until: endOf(await side.now(db), leaseMs) });
    },
    async finish(lease, outcome, { ttlMs, also = [] }) {
      const text = JSON.stringify(outcome);
      await write(async (trx) => {
        const end = { status: "finished", outcome: text, expires_at: endOf(await side.now(trx), ttlMs) } as const;
        await mustChange(trx, lease, end);
        await parts(trx, lease.key);
        if (also.length > 0) {
          await trx
            .updateTable("tenon_outcomes")
            .set(end)
            .where("key", "in", also)
            .where("status", "=", "finished")
            .execute();
        }
      });
    },
    async release(lease) {
      await change(await side.db(), lease, { status: "free" });
    },
    async putBlob(id, text, ttlMs) {
      const db = await side.db();
      const expires_at = endOf(await side.now(db), ttlMs);
      await db
        .insertInto("tenon_blobs")
        .values({ id, body: text, expires_at })
        .onConflict((conflict) => conflict.column("id").doUpdateSet({ body: text, expires_at }))
        .execute();
    },
    async getBlob(id) {
      const db = await side.db();
      const row = await db
        .selectFrom("tenon_blobs")
        .select("body")
        .where("id", "=", id)
        .where("expires_at", ">", await side.now(db))
        .executeTakeFirst();
      return row?.body;
    },
    sweep,
    close: () => side.close(),
  };
}
