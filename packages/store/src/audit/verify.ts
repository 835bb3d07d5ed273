import type { AuditBroken, AuditIntact, AuditVerifyOptions } from "./audit.ts";
import type { AuditTable } from "./audit-table.ts";
import { type AuditRow, isSealed, outcomeIn } from "./chain.ts";

/** Entries of one page, at most; fewer where they are large. */
const PAGE = 500;
const PAGE_BYTES = 4 * 1024 * 1024;
/** How far from its place an entry is looked for that was moved. */
const MOVED = 1_000;

/** Rows in order, a bounded number of bytes at a time as long as no single row has more. */
async function* inPages(table: AuditTable, after: number, onPage: () => void): AsyncGenerator<AuditRow> {
  let limit = PAGE;
  for (let from = after; ; ) {
    const rows = await table.rows({ after: from, limit });
    yield* rows;
    onPage();
    const last = rows.at(-1);
    if (!last || rows.length < limit) return;
    from = last.seq;
    const bytes = rows.reduce((sum, { data }) => sum + data.length, 0);
    limit = Math.max(1, Math.min(PAGE, Math.floor((limit * PAGE_BYTES) / Math.max(bytes, 1))));
  }
}

/** The place an entry was written at, where its hash fits another one than where it stands. */
function trueSeq(row: AuditRow): number | undefined {
  for (let off = 1; off <= MOVED; off++) {
    for (const seq of [row.seq + off, row.seq - off]) if (seq > 0 && isSealed(row, seq)) return seq;
  }
  return undefined;
}

/**
 * Checks the trail from its first entry to its last as of now; what is written meanwhile is left for the next time.
 * What is wrong is told from how the hashes fit: each covers the entry's place and the hash of the entry before.
 */
export async function verifyTrail(
  table: AuditTable,
  { anchor, onProgress }: AuditVerifyOptions,
): Promise<AuditIntact | AuditBroken> {
  const { start, head, last } = await table.bounds();
  let before = start;
  let entries = 0;
  let intents = 0;
  let unknown = 0;
  let corrections = 0;
  const broken = (problem: AuditBroken["problem"], seq: number, message: string): AuditBroken => ({
    intact: false,
    entries,
    problem,
    seq,
    message,
  });

  /** Why a row does not follow the entry before it. */
  async function explain(row: AuditRow): Promise<AuditBroken> {
    const { seq } = row;
    if (isSealed(row)) {
      const problem = "changed" as const;
      return broken(
        problem,
        before.seq,
        before.seq === start.seq
          ? `entry ${seq} follows an entry that the trail does not have: its beginning was replaced`
          : `entry ${before.seq} is not the one that entry ${seq} was written after: it was changed and given a new hash`,
      );
    }
    const written = trueSeq(row);
    if (written === undefined) {
      const [next] = await table.rows({ after: seq, limit: 1 });
      const pushed = next && next.previous === before.hash && trueSeq(next) === seq;
      return pushed
        ? broken("inserted", seq, `entry ${seq} was inserted: the entry after it follows the one before it`)
        : broken("changed", seq, `entry ${seq} was changed: it does not fit its hash`);
    }
    const rightful = await table.following(before.hash);
    if (rightful !== undefined && rightful !== seq) {
      return broken("reordered", seq, `entry ${seq} was written as entry ${written}: entries were reordered`);
    }
    if (written > seq) {
      return broken(
        "removed",
        seq,
        `${written - seq === 1 ? "an entry was" : `${written - seq} entries were`} removed at ${seq}: what stands there was written as entry ${written}`,
      );
    }
    return broken(
      "inserted",
      before.seq,
      `entry ${before.seq} was inserted: entry ${seq} was written as entry ${written}, right after the one before it`,
    );
  }

  // from below the first place, so that an entry before it is seen
  const from = start.seq === 0 ? Number.MIN_SAFE_INTEGER : start.seq;
  const end = head?.seq ?? start.seq;
  for await (const row of inPages(table, from, () => onProgress?.(entries))) {
    if (row.seq > end) break;
    const place = before.seq + 1;
    if (row.seq < place) return broken("inserted", row.seq, `entry ${row.seq} was inserted before the first one`);
    if (row.seq > place) {
      const many = row.seq - place;
      return broken(
        "removed",
        place,
        many === 1 ? `entry ${place} was removed` : `entries ${place} to ${row.seq - 1} were removed`,
      );
    }
    if (row.previous !== before.hash || !isSealed(row)) return explain(row);
    if (anchor && row.seq === anchor.seq && row.hash !== anchor.hash) {
      return broken(
        "changed",
        row.seq,
        `entry ${row.seq} is not the one that the anchor names: the trail was rewritten, here or before`,
      );
    }
    before = { seq: row.seq, hash: row.hash };
    entries += 1;
    if (row.kind === "intent") intents += 1;
    else if (row.kind === "correction") corrections += 1;
    else if (outcomeIn(row) === "unknown") unknown += 1;
  }

  if (!head && last > start.seq) {
    return broken(
      "cut",
      1,
      "what says where the trail ends is gone (tenon_audit_head), so nobody can say what was cut off",
    );
  }
  if (before.seq < end) {
    const from = before.seq + 1;
    return broken(
      "cut",
      from,
      from === end ? `the last entry, ${end}, was cut off` : `entries ${from} to ${end}, the last ones, were cut off`,
    );
  }
  if (head && head.hash !== before.hash) {
    return broken("changed", before.seq, `entry ${before.seq}, the last one, was changed and given a new hash`);
  }
  if (last > end) return broken("inserted", end + 1, `entry ${end + 1} was inserted after the last one`);
  if (anchor && anchor.seq > before.seq) {
    return broken(
      "cut",
      before.seq + 1,
      `the trail ends at ${before.seq}, and the anchor names entry ${anchor.seq}: its end was cut off`,
    );
  }
  return {
    intact: true,
    entries,
    head: entries > 0 ? before : undefined,
    intents,
    unknown: unknown - corrections,
    corrections,
  };
}
