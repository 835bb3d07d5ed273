import type { ExpressionBuilder, SelectQueryBuilder } from "kysely";
import type { SqlSide, Tables } from "../sql/side.ts";
import { AuditError, type AuditQuery } from "./audit.ts";
import type { AuditTable, AuditTurn, OpenPass } from "./audit-table.ts";
import { type AuditRow, recordOf, rowOf, START } from "./chain.ts";

/** The one row of `tenon_audit_head`. */
const HEAD = 1;

type Stored = {
  readonly [Name in keyof Tables["tenon_audit"]]: Tables["tenon_audit"][Name] extends string | null
    ? Tables["tenon_audit"][Name]
    : number | string;
};

function rowFrom({ seq, pass, call_id, thread_id, ...rest }: Stored): AuditRow {
  return { ...rest, seq: Number(seq), pass: Number(pass), callId: call_id, threadId: thread_id };
}

function storedFrom({ callId, threadId, ...rest }: AuditRow) {
  return { ...rest, call_id: callId, thread_id: threadId };
}

function headless(): AuditError {
  return new AuditError(
    "Nothing is added to the audit trail: what says where it ends is gone (tenon_audit_head), so somebody changed it by hand. " +
      "Look at it with `tenon audit verify`, and restore the database from a backup",
    { code: "broken" },
  );
}

/** What is asked for, in the words of the database. */
function filtered<O>(
  query: SelectQueryBuilder<Tables, "tenon_audit", O>,
  { callId, thread, server, tool, since, until }: AuditQuery,
): SelectQueryBuilder<Tables, "tenon_audit", O> {
  let found = query;
  if (callId !== undefined) found = found.where("call_id", "=", callId);
  if (thread !== undefined) {
    // only an intent names its conversation
    found = found.where("call_id", "in", (intents) =>
      intents
        .selectFrom("tenon_audit as of_thread")
        .select("of_thread.call_id")
        .where("of_thread.thread_id", "=", thread),
    );
  }
  if (server !== undefined) found = found.where("server", "=", server);
  if (tool !== undefined) found = found.where("tool", "=", tool);
  if (since !== undefined) found = found.where("at", ">=", new Date(since).toISOString());
  if (until !== undefined) found = found.where("at", "<", new Date(until).toISOString());
  return found;
}

/** What is noted of the last entry; null where nothing is. */
const headIn = (from: ExpressionBuilder<Tables, never>) => {
  const head = from.selectFrom("tenon_audit_head").where("id", "=", HEAD);
  return [head.select("seq").as("seq"), head.select("hash").as("hash")] as const;
};

/** The trail over any of the databases: one set of queries. */
export function createSqlAuditTable(side: SqlSide): AuditTable {
  return {
    shared: true,
    async inTurn(run) {
      const db = await side.db();
      return db.transaction().execute(async (trx) => {
        await side.lock(trx, "audit");
        const turn: AuditTurn = {
          async place() {
            const { seq, hash, now } = await trx
              .selectNoFrom((from) => [...headIn(from), side.wall().as("now")])
              .executeTakeFirstOrThrow();
            if (seq !== null && hash !== null) return { head: { seq: Number(seq), hash }, now: Number(now) };
            const any = await trx.selectFrom("tenon_audit").select("seq").limit(1).executeTakeFirst();
            if (any) throw headless();
            return { head: START, now: Number(now) };
          },
          async open(of) {
            const open = trx
              .selectFrom("tenon_audit_open as open")
              .leftJoin("tenon_audit as intent", "intent.seq", "open.seq")
              .select(["open.call_id", "open.pass", "open.seq", "open.writer", "intent.server", "intent.tool"])
              .orderBy("open.seq");
            const wanted = "calls" in of ? of.calls : of.writers;
            if (wanted.length === 0) return [];
            const rows = await open.where("calls" in of ? "open.call_id" : "open.writer", "in", wanted).execute();
            return rows.map(
              ({ call_id, pass, seq, ...rest }): OpenPass => ({ ...rest, callId: call_id, pass, seq: Number(seq) }),
            );
          },
          async lastPasses(calls) {
            if (calls.length === 0) return new Map();
            const rows = await trx
              .selectFrom("tenon_audit")
              .select((row) => ["call_id", row.fn.max("pass").as("pass")])
              .where("call_id", "in", calls)
              .groupBy("call_id")
              .execute();
            return new Map(rows.map(({ call_id, pass }) => [call_id, Number(pass)]));
          },
          async ends(callId, pass) {
            const rows = await trx
              .selectFrom("tenon_audit")
              .selectAll()
              .where("call_id", "=", callId)
              .where("pass", "=", pass)
              .where("kind", "!=", "intent")
              .orderBy("seq")
              .execute();
            return rows.map((row) => recordOf(rowFrom(row)));
          },
          async add(records, opened, closed) {
            const last = records.at(-1);
            if (!last) return;
            await trx
              .insertInto("tenon_audit")
              .values(records.map((record) => storedFrom(rowOf(record))))
              .execute();
            const head = { seq: last.seq, hash: last.hash };
            await trx
              .insertInto("tenon_audit_head")
              .values({ id: HEAD, ...head })
              .onConflict((conflict) => conflict.column("id").doUpdateSet(head))
              .execute();
            if (opened.length > 0) {
              await trx
                .insertInto("tenon_audit_open")
                .values(opened.map(({ callId, pass, seq, writer }) => ({ call_id: callId, pass, seq, writer })))
                .execute();
            }
            if (closed.length > 0) {
              const seqs = closed.map(({ seq }) => seq);
              const calls = closed.map(({ callId }) => callId);
              // by its key, and by its number: another pass of the call may be open
              await trx.deleteFrom("tenon_audit_open").where("call_id", "in", calls).where("seq", "in", seqs).execute();
            }
          },
        };
        return run(turn);
      });
    },
    async rows(query) {
      const db = await side.db();
      const page = filtered(db.selectFrom("tenon_audit").selectAll().where("seq", ">", query.after), query)
        .orderBy("seq", query.newest ? "desc" : "asc")
        .limit(query.limit);
      const rows = (await page.execute()).map(rowFrom);
      return query.newest ? rows.reverse() : rows;
    },
    async bounds() {
      const db = await side.db();
      // one statement sees one moment
      const row = await db
        .selectNoFrom((from) => [
          ...headIn(from),
          from
            .selectFrom("tenon_audit")
            .select((entry) => entry.fn.max("seq").as("last"))
            .as("last"),
        ])
        .executeTakeFirstOrThrow();
      const head = row.seq === null || row.hash === null ? undefined : { seq: Number(row.seq), hash: row.hash };
      return { start: START, head, last: Number(row.last ?? 0) };
    },
    async following(hash) {
      const db = await side.db();
      const row = await db
        .selectFrom("tenon_audit")
        .select("seq")
        .where("previous", "=", hash)
        .orderBy("seq")
        .executeTakeFirst();
      return row && Number(row.seq);
    },
    async unfinished() {
      const db = await side.db();
      const rows = await db
        .selectFrom("tenon_audit_open as open")
        .innerJoin("tenon_audit as intent", "intent.seq", "open.seq")
        .selectAll("intent")
        .select("open.writer")
        .orderBy("open.seq")
        .execute();
      return rows.map(({ writer, ...row }) => ({ writer, intent: rowFrom(row) }));
    },
    async writers() {
      const db = await side.db();
      const rows = await db.selectFrom("tenon_audit_open").select("writer").distinct().execute();
      return rows.map(({ writer }) => writer);
    },
    close: () => side.close(),
  };
}
