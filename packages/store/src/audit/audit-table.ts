import type { AuditAnchor, AuditQuery, AuditRecord } from "./audit.ts";
import type { AuditRow } from "./chain.ts";

/** An intent that has no outcome yet, and what is needed to write one. */
export interface OpenPass {
  readonly callId: string;
  readonly pass: number;
  /** Of the intent. */
  readonly seq: number;
  readonly writer: string;
  readonly server: string | null;
  readonly tool: string | null;
}

/** The trail while nobody else may add to it. */
export interface AuditTurn {
  /** The last entry, and the time of day in milliseconds since 1970, of the database where it has a clock. */
  place(): Promise<{ readonly head: AuditAnchor; readonly now: number }>;
  /** Open passes of these calls, or of these writers, oldest first. */
  open(of: { readonly calls: readonly string[] } | { readonly writers: readonly string[] }): Promise<OpenPass[]>;
  /** The highest pass of each of these calls. */
  lastPasses(calls: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** What was written when a pass was over: its outcome, and its correction after it. */
  ends(callId: string, pass: number): Promise<AuditRecord[]>;
  /** Adds entries that follow each other and the head. Passes in `opened` are open from now on; those in `closed` no more. */
  add(
    records: readonly AuditRecord[],
    opened: readonly OpenPass[],
    closed: readonly Pick<OpenPass, "callId" | "pass" | "seq">[],
  ): Promise<void>;
}

/** Where the trail is kept; what differs between memory and databases. */
export interface AuditTable {
  readonly shared: boolean;
  /** Runs `work` alone; what it adds is durable afterwards, or nothing is. */
  inTurn<T>(work: (turn: AuditTurn) => Promise<T>): Promise<T>;
  /** A page in the order of the trail; of the newest ones with `newest`. */
  rows(query: AuditQuery & { readonly after: number; readonly limit: number }): Promise<AuditRow[]>;
  /**
   * Where the trail begins and ends, all seen at one moment.
   * `start` is the place before the oldest entry that is kept, `head` what was noted when the last one was added, `last` the highest
   * `seq` there is.
   */
  bounds(): Promise<{ readonly start: AuditAnchor; readonly head: AuditAnchor | undefined; readonly last: number }>;
  /** The place of an entry that says it follows this hash. */
  following(hash: string): Promise<number | undefined>;
  /** Open passes with their intents, oldest first. */
  unfinished(): Promise<{ readonly writer: string; readonly intent: AuditRow }[]>;
  /** Writers of open passes. */
  writers(): Promise<readonly string[]>;
  close(): Promise<void>;
}
