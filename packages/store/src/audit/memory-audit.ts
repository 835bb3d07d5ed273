import type { AuditAnchor, AuditQuery } from "./audit.ts";
import type { AuditTable, AuditTurn, OpenPass } from "./audit-table.ts";
import { type AuditRow, recordOf, rowOf, START } from "./chain.ts";

/** Entries that are kept; older ones are forgotten. */
const MAX_ENTRIES = 100_000;

/** The trail in the memory of this process. Bounded: the oldest entries go first, and then the trail begins later. */
export function createMemoryAuditTable(maxEntries = MAX_ENTRIES): AuditTable {
  let rows: AuditRow[] = [];
  let start: AuditAnchor = START;
  let head: AuditAnchor = START;
  const opened = new Map<string, OpenPass>();
  /** The highest pass of each call. */
  let passes = new Map<string, number>();
  const nameOf = ({ callId, pass }: Pick<OpenPass, "callId" | "pass">): string => `${pass}:${callId}`;
  let turn = Promise.resolve();

  const at = (seq: number): AuditRow | undefined => rows[seq - start.seq - 1];

  const work: AuditTurn = {
    place: async () => ({ head, now: Date.now() }),
    open: async (of) =>
      [...opened.values()].filter((one) =>
        "calls" in of ? of.calls.includes(one.callId) : of.writers.includes(one.writer),
      ),
    lastPasses: async () => passes,
    ends: async (callId, pass) =>
      rows.filter((row) => row.callId === callId && row.pass === pass && row.kind !== "intent").map(recordOf),
    async add(records, begun, closed) {
      for (const record of records) {
        rows.push(rowOf(record));
        head = { seq: record.seq, hash: record.hash };
        if (record.kind !== "correction")
          passes.set(record.callId, Math.max(record.pass, passes.get(record.callId) ?? 0));
      }
      for (const one of begun) opened.set(nameOf(one), one);
      for (const one of closed) opened.delete(nameOf(one));
      // in one go now and then, not entry by entry
      if (rows.length <= maxEntries * 1.1) return;
      const gone = rows.length - maxEntries;
      const last = rows[gone - 1];
      if (last) start = { seq: last.seq, hash: last.hash };
      rows = rows.slice(gone);
      passes = new Map(rows.filter(({ kind }) => kind !== "correction").map(({ callId, pass }) => [callId, pass]));
    },
  };

  function matching({ callId, thread, server, tool, since, until, after }: AuditQuery & { after: number }): AuditRow[] {
    const calls =
      thread === undefined
        ? undefined
        : new Set(rows.filter((row) => row.threadId === thread).map((row) => row.callId));
    const from = since === undefined ? "" : new Date(since).toISOString();
    const to = until === undefined ? undefined : new Date(until).toISOString();
    return rows
      .slice(Math.max(0, after - start.seq))
      .filter(
        (row) =>
          (callId === undefined || row.callId === callId) &&
          (calls === undefined || calls.has(row.callId)) &&
          (server === undefined || row.server === server) &&
          (tool === undefined || row.tool === tool) &&
          row.at >= from &&
          (to === undefined || row.at < to),
      );
  }

  return {
    shared: false,
    async inTurn(run) {
      const mine = turn.then(() => run(work));
      turn = mine.then(
        () => undefined,
        () => undefined,
      );
      return mine;
    },
    rows: async (query) => (query.newest ? matching(query).slice(-query.limit) : matching(query).slice(0, query.limit)),
    bounds: async () => ({ start, head, last: rows.at(-1)?.seq ?? start.seq }),
    following: async (hash) => rows.find(({ previous }) => previous === hash)?.seq,
    unfinished: async () =>
      [...opened.values()].flatMap(({ seq, writer }) => {
        const intent = at(seq);
        return intent ? [{ writer, intent }] : [];
      }),
    writers: async () => [...new Set([...opened.values()].map(({ writer }) => writer))],
    async close() {},
  };
}
