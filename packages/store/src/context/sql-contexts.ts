import type { JsonObject } from "@tenon/core";
import { endOf } from "../lease/leases.ts";
import type { SqlSide } from "../sql/side.ts";
import { type ContextStore, contextRow, contextText } from "./contexts.ts";

const SWEEP_EVERY_MS = 60_000;

/** Contexts over any of the databases: one set of queries. */
export function createSqlContexts(side: SqlSide): ContextStore {
  let swept = performance.now();

  async function sweep(): Promise<number> {
    swept = performance.now();
    const db = await side.db();
    const now = await side.now(db);
    const gone = await db.deleteFrom("tenon_contexts").where("expires_at", "<=", now).executeTakeFirst();
    return Number(gone.numDeletedRows);
  }

  return {
    shared: true,
    async put(key, context, ttlMs) {
      const row = contextRow(key);
      const text = contextText(context);
      // whoever comes by cleans up: no timer keeps a process alive for it
      if (performance.now() - swept > SWEEP_EVERY_MS) await sweep();
      const db = await side.db();
      const expires_at = endOf(await side.now(db), ttlMs);
      await db
        .insertInto("tenon_contexts")
        .values({ id: row, context: text, expires_at })
        .onConflict((conflict) => conflict.column("id").doUpdateSet({ context: text, expires_at }))
        .execute();
    },
    async get(key) {
      const db = await side.db();
      const found = await db
        .selectFrom("tenon_contexts")
        .select(["context", "expires_at"])
        .where("id", "=", contextRow(key))
        .executeTakeFirst();
      const leftMs = Number(found?.expires_at ?? 0) - (await side.now(db));
      if (!found || leftMs <= 0) return undefined;
      return { context: JSON.parse(found.context) as JsonObject, expiresAt: Math.round(Date.now() + leftMs) }; // put() wrote it
    },
    sweep,
    close: () => side.close(),
  };
}
