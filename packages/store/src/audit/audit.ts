import { type JsonObject, TenonError } from "@tenon/core";

/**
 * What an entry says of a call: it is about to leave, it is over, or it is over after all: the outcome of a call that had been
 * given up as `unknown`. A pass of a call has at most one entry of each kind.
 */
export type AuditKind = "intent" | "outcome" | "correction";

/** One entry of the trail. Never changed and never deleted. */
export interface AuditRecord {
  /** 1 for the first entry, then one more for each: the order of the trail. */
  readonly seq: number;
  /** ISO 8601 in UTC, the time of day of whoever wrote it; the database's on Postgres. */
  readonly at: string;
  readonly kind: AuditKind;
  /** Names the call; the same when it is resumed by another process. */
  readonly callId: string;
  /** 1, then one more for each further sending of the same call. */
  readonly pass: number;
  /** What is said of it, such as `server`, `tool`, `args`, `actor` of an intent and `outcome`, `ms`, `error` of an outcome. */
  readonly data: JsonObject;
  /** `hash` of the entry before; empty for the first. */
  readonly previous: string;
  /** SHA-256, base64url, of the canonical JSON (RFC 8785) of this entry without `hash`. */
  readonly hash: string;
}

/** A place in the trail, kept somewhere else: whoever rewrites the trail up to there is found out. */
export type AuditAnchor = Pick<AuditRecord, "seq" | "hash">;

/** An entry that is to be written. */
export type NewAuditEntry =
  /** The store says which pass it is. */
  | { readonly kind: "intent"; readonly callId: string; readonly data: JsonObject }
  /** Of the pass that its intent was given; left out where no intent could be written. */
  | {
      readonly kind: "outcome";
      readonly callId: string;
      readonly pass?: number | undefined;
      readonly data: JsonObject;
    };

/** An entry of the client's `audit` interceptor, as far as the store looks at it; the rest is kept as it is. */
export interface AuditedCall {
  readonly callId: string;
  readonly pass: number;
}

/** What `audit({ sink })` of `@tenon/client/interceptors` takes. */
export interface AuditSinkPair {
  /** Durable when it resolves: the call may leave. */
  intent(entry: AuditedCall): Promise<void>;
  /** Tried again while the database cannot be reached, until the store is closed. */
  outcome(entry: AuditedCall): Promise<void>;
}

/** Which entries. What is left out does not matter. */
export interface AuditFilter {
  /** Entries of this call. Default: of all. */
  readonly callId?: string | undefined;
  /** Entries of calls that were made in this conversation (`threadId` of their intent). Default: of all. */
  readonly thread?: string | undefined;
  /** Entries of calls to this server. Default: to all. */
  readonly server?: string | undefined;
  /** Entries of calls to this tool, by its wire name. Default: to all. */
  readonly tool?: string | undefined;
  /** Written then or later, in milliseconds since 1970. Default: from the beginning. */
  readonly since?: number | undefined;
  /** Written before then, in milliseconds since 1970. Default: to the end. */
  readonly until?: number | undefined;
}

/** One page of the trail. */
export interface AuditQuery extends AuditFilter {
  /** Entries after this `seq`. Default 0: from the first. */
  readonly after?: number | undefined;
  /** At most so many, 1 to 1,000. Default 100. */
  readonly limit?: number | undefined;
  /** The newest ones instead of the oldest; still in the order of the trail. Default false. */
  readonly newest?: boolean | undefined;
}

/** How the end of the trail is followed. */
export interface AuditTailOptions extends AuditFilter {
  /** Entries after this `seq`. Default: those written from now on. */
  readonly after?: number | undefined;
  /** Ends it; what was asked for is not an error. Default: it ends with the store. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds between two looks for what other processes wrote, where nothing tells of it. Default 500. */
  readonly pollMs?: number | undefined;
}

/** What is checked. */
export interface AuditVerifyOptions {
  /** A place that was exported earlier. Default: none, and then a trail that was rewritten as a whole passes. */
  readonly anchor?: AuditAnchor | undefined;
  /** Told of how far it is, after each page. Default: nobody. */
  readonly onProgress?: ((checked: number) => void) | undefined;
}

/** What a trail holds that is unbroken. */
export interface AuditIntact {
  readonly intact: true;
  /** How many entries were checked. */
  readonly entries: number;
  /** The last one; undefined for an empty trail. Keep it elsewhere: it is the anchor for the next time. */
  readonly head: AuditAnchor | undefined;
  readonly intents: number;
  /** Outcomes that are `unknown` and were not corrected. */
  readonly unknown: number;
  readonly corrections: number;
}

/** The first place at which a trail is broken. */
export interface AuditBroken {
  readonly intact: false;
  /** Entries before it that are as they were written. */
  readonly entries: number;
  /** What was done: `changed` an entry, `removed` or `inserted` one, `reordered` some, `cut` off the end. */
  readonly problem: "changed" | "removed" | "inserted" | "reordered" | "cut";
  /** The place: the entry that is changed, gone, too much, or where another one should be. */
  readonly seq: number;
  /** The same for a person. */
  readonly message: string;
}

/** An intent without an outcome. */
export interface OpenCall {
  readonly intent: AuditRecord;
  /** The process that wrote it. */
  readonly writer: string;
  /** Whether that process still says that it is there: the call may be under way. Else the next sweep ends it. */
  readonly alive: boolean;
}

/** How `sweep` decides who is gone. */
export interface AuditSweepOptions {
  /** Whether a process is known to be dead, so that its lease need not run out, for example `isProcessGone`. Default: nobody knows. */
  readonly isGone?: ((writer: string) => boolean) | undefined;
}

/** How the trail is written out. */
export interface AuditExportOptions extends AuditFilter {
  /** `jsonl`: each entry as it is, a line of JSON. `csv`: a table for people, safe to open in a spreadsheet. Default `jsonl`. */
  readonly format?: "jsonl" | "csv" | undefined;
}

/**
 * What was called, by whom, and what came of it: entries that are only ever added, each with the hash of the one before, so that
 * a change is found. One trail for a database; any number of processes write to it.
 *
 * An intent is alive while the store that wrote it is: it renews one lease for all its open calls, however long they take. When
 * its process is gone, {@link sweep}, or whoever sends the call again, gives its open calls the outcome `unknown`.
 *
 * @example
 * const client = createClient({ servers, interceptors: [audit({ sink: stores.audit.sink(), redact: {} })] });
 */
export interface AuditStore {
  /** Whether other processes see the same trail. */
  readonly shared: boolean;
  /**
   * Adds an entry, durable when it resolves. An intent of a call that another process left open gives that pass the outcome
   * `unknown` first. An outcome of a pass that was given up as `unknown` becomes a `correction`; the same outcome once more is
   * the entry there is.
   * @throws AuditError `second_outcome` for another outcome of a pass that has one, `no_intent` for a pass that never began;
   *   ConfigError `audit_entry` for what cannot be kept
   */
  append(entry: NewAuditEntry): Promise<AuditRecord>;
  /** Takes the entries of the client's `audit` interceptor. */
  sink(): AuditSinkPair;
  /** One page, in the order of the trail. */
  read(query?: AuditQuery): Promise<readonly AuditRecord[]>;
  /** The last entry there is. */
  head(): Promise<AuditAnchor | undefined>;
  /** Follows the end of the trail: each entry once, in order. */
  tail(options?: AuditTailOptions): AsyncIterable<AuditRecord>;
  /** Checks the whole trail, in memory that does not grow with it, and says where it is broken first. */
  verify(options?: AuditVerifyOptions): Promise<AuditIntact | AuditBroken>;
  /** The trail as lines of text, each with its line end. */
  export(options?: AuditExportOptions): AsyncIterable<string>;
  /** Calls whose intent has no outcome, oldest first. */
  unfinished(): Promise<readonly OpenCall[]>;
  /**
   * Gives calls whose process is gone the outcome `unknown`, and returns these entries. Stores also do this on their own now and
   * then, as they write.
   */
  sweep(options?: AuditSweepOptions): Promise<readonly AuditRecord[]>;
  /** Ends this store; its open calls are then those of a process that is gone. */
  close(): Promise<void>;
}

/** An entry contradicts the trail: a program counts its calls wrongly. */
export class AuditError extends TenonError {}
