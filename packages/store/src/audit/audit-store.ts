import { ConnectionError, isRecord } from "@tenon/core";
import {
  anything,
  callable,
  checkOptions,
  flag,
  kindOf,
  milliseconds,
  type OptionCheck,
  type OptionChecks,
  oneOf,
  refuseOption,
  text,
  zeroOrMore,
} from "@tenon/core/internal";
import type { Signals } from "../event/signals.ts";
import type { LeaseStore } from "../lease/leases.ts";
import { type Appended, Appending, WHY } from "./append.ts";
import type {
  AuditExportOptions,
  AuditFilter,
  AuditQuery,
  AuditRecord,
  AuditSinkPair,
  AuditStore,
  AuditSweepOptions,
  AuditTailOptions,
  AuditVerifyOptions,
  NewAuditEntry,
} from "./audit.ts";
import type { AuditTable } from "./audit-table.ts";
import { checkEntry, recordOf } from "./chain.ts";
import { exportLines } from "./export.ts";
import { groupCommit } from "./group-commit.ts";
import { sinkInto } from "./sink.ts";
import { createWatch } from "./tail.ts";
import { verifyTrail } from "./verify.ts";
import { createWriter, goneWriters } from "./writer.ts";

/** Open calls that are given up in one turn. */
const SWEPT_AT_ONCE = 500;
const PAGE = 100;
const LARGEST_PAGE = 1_000;
/** The last millisecond a Date can say with four digits of the year. */
const LATEST = Date.UTC(9999, 11, 31);

const moment: OptionCheck = (value, where) => {
  if (typeof value === "number" && value >= 0 && value <= LATEST) return;
  refuseOption(`${where} must be milliseconds since 1970, got ${typeof value === "number" ? value : kindOf(value)}`);
};
const page: OptionCheck = (value, where) => {
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= LARGEST_PAGE) return;
  refuseOption(`${where} must be a whole number from 1 to ${LARGEST_PAGE}, got ${String(value)}`);
};
const FILTER: OptionChecks<AuditFilter> = {
  callId: text,
  thread: text,
  server: text,
  tool: text,
  since: moment,
  until: moment,
};
const QUERY: OptionChecks<AuditQuery> = { ...FILTER, after: zeroOrMore("entries"), limit: page, newest: flag };
const TAIL: OptionChecks<AuditTailOptions> = {
  ...FILTER,
  after: zeroOrMore("entries"),
  signal: anything,
  pollMs: milliseconds,
};
const EXPORT: OptionChecks<AuditExportOptions> = { ...FILTER, format: oneOf("jsonl", "csv") };
const VERIFY: OptionChecks<AuditVerifyOptions> = {
  anchor(value, where) {
    if (isRecord(value) && Number.isInteger(value.seq) && typeof value.hash === "string") return;
    refuseOption(`${where} must be { seq, hash } as an earlier verify() or export gave it`);
  },
  onProgress: callable,
};

/** What a trail needs besides its table. Closed with it. */
export interface AuditParts {
  /** Where its writers say that they are there. */
  readonly leases: LeaseStore;
  /** Milliseconds a writer's lease lasts. */
  readonly leaseMs: number;
  /** Tells other processes of new entries. Not closed with the trail. */
  readonly signals: Signals;
}

/** The audit trail over any table. */
export function createAudit(table: AuditTable, { leases, leaseMs, signals }: AuditParts): AuditStore {
  const writer = createWriter(leases, leaseMs);
  const watch = createWatch(signals);
  const closing = new AbortController();
  /** Passes this store opened and that are not over. */
  const open = new Set<string>();
  /** An intent may be in the trail although whoever wrote it was told that it is not. */
  let doubt = false;
  let swept = Number.NEGATIVE_INFINITY;
  const nameOf = ({ callId, pass }: { callId: string; pass: number }): string => `${pass}:${callId}`;

  function note(records: readonly AuditRecord[]): void {
    if (records.length === 0) return;
    for (const record of records) {
      if (record.kind === "intent") open.add(nameOf(record));
      else open.delete(nameOf(record));
    }
    writer.keep(open.size > 0);
    watch.added();
  }

  async function commit(batch: readonly NewAuditEntry[]): Promise<Appended[]> {
    if (batch.some(({ kind }) => kind === "intent")) await writer.ready();
    try {
      const { results, records } = await table.inTurn(async (turn) => {
        const appending = await Appending.begin(turn, writer.name);
        if (doubt) {
          const mine = await turn.open({ writers: [writer.name] });
          appending.giveUp(
            mine.filter((one) => !open.has(nameOf(one))),
            WHY.doubtful,
          );
        }
        const results = await appending.entries(batch);
        await appending.end();
        return { results, records: appending.records };
      });
      doubt = false;
      note(records);
      return results;
    } catch (error) {
      doubt = true;
      throw error;
    }
  }

  const queue = groupCommit(commit);

  async function append(entry: NewAuditEntry): Promise<AuditRecord> {
    if (closing.signal.aborted) throw closed();
    const data = checkEntry(entry.callId, entry.data);
    // whoever comes by cleans up: no timer keeps a process alive for it
    if (performance.now() - swept > leaseMs) await sweep();
    const appended = await queue.add({ ...entry, data });
    if ("error" in appended) throw appended.error;
    return appended.record;
  }

  async function sweep({ isGone }: AuditSweepOptions = {}): Promise<readonly AuditRecord[]> {
    swept = performance.now();
    const others = (await table.writers()).filter((name) => name !== writer.name);
    const gone = await goneWriters(leases, others, isGone);
    if (gone.length === 0) return [];
    const all: AuditRecord[] = [];
    for (;;) {
      const records = await table.inTurn(async (turn) => {
        const appending = await Appending.begin(turn, writer.name);
        appending.giveUp((await turn.open({ writers: gone })).slice(0, SWEPT_AT_ONCE), WHY.gone);
        await appending.end();
        return appending.records;
      });
      note(records);
      all.push(...records);
      if (records.length < SWEPT_AT_ONCE) return all;
    }
  }

  const page = async (query: AuditQuery): Promise<readonly AuditRecord[]> => {
    const rows = await table.rows({ ...query, after: query.after ?? 0, limit: query.limit ?? PAGE });
    return rows.map((row) => Object.freeze(recordOf(row)));
  };

  async function* tail(options: AuditTailOptions): AsyncGenerator<AuditRecord> {
    const { after, signal, pollMs, ...filter } = options;
    const ended = signal ? AbortSignal.any([signal, closing.signal]) : closing.signal;
    const look = watch.follow();
    try {
      let from = after ?? (await table.bounds()).last;
      while (!ended.aborted) {
        look.begin();
        const { last } = await table.bounds();
        const found = await page({ ...filter, after: from, limit: PAGE });
        for (const record of found) {
          if (ended.aborted) return;
          yield record;
          from = record.seq;
        }
        if (found.length === PAGE) continue;
        from = Math.max(from, last); // what the filter left out is not looked at again
        await look.wait(pollMs, ended);
      }
    } finally {
      look.end();
    }
  }

  return {
    shared: table.shared,
    append,
    sink: (): AuditSinkPair => sinkInto(append, closing.signal),
    async read(query = {}) {
      checkOptions(query, QUERY, "audit.read(query)");
      return page(query);
    },
    async head() {
      const { head } = await table.bounds();
      return head && head.seq > 0 ? head : undefined;
    },
    tail(options = {}) {
      checkOptions(options, TAIL, "audit.tail(options)");
      return tail(options);
    },
    async verify(options = {}) {
      checkOptions(options, VERIFY, "audit.verify(options)");
      return verifyTrail(table, options);
    },
    export(options = {}) {
      checkOptions(options, EXPORT, "audit.export(options)");
      return exportLines(page, options);
    },
    async unfinished() {
      const found = await table.unfinished();
      const writers = [...new Set(found.map((one) => one.writer))].filter((name) => name !== writer.name);
      const gone = new Set(await goneWriters(leases, writers));
      return found.map((one) => ({
        intent: recordOf(one.intent),
        writer: one.writer,
        alive: one.writer === writer.name ? open.has(nameOf(one.intent)) : !gone.has(one.writer),
      }));
    },
    async sweep(options = {}) {
      checkOptions(options, { isGone: callable }, "audit.sweep(options)");
      return sweep(options);
    },
    async close() {
      if (closing.signal.aborted) return;
      closing.abort(closed());
      await queue.idle();
      await writer.close();
      watch.close();
      await table.close();
    },
  };
}

function closed(): ConnectionError {
  return new ConnectionError("The audit trail is closed", { code: "store_closed" });
}
