import type { ColumnType, Kysely, RawBuilder, Transaction } from "kysely";
import type { Signals } from "../event/signals.ts";
import type { ClaimedBefore } from "../outcome/outcomes.ts";
import type { TaskStatus } from "../task/tasks.ts";

/** pg reads a bigint as text; what we keep in one is far below 2^53. */
type Big = ColumnType<number | string, number | RawBuilder<number>, number | RawBuilder<number>>;
type BigOrNull = ColumnType<number | string | null, number | RawBuilder<number> | null, number | null>;

/** The tables of `migrations/`. */
export interface Tables {
  tenon_outcomes: {
    key: string;
    digest: string;
    status: ClaimedBefore["status"];
    begun: number;
    fence: Big;
    lease_until: Big;
    expires_at: Big;
    outcome: string | null;
  };
  tenon_outcome_parts: { key: string; name: string; value: string };
  tenon_blobs: { id: string; body: string; expires_at: Big };
  tenon_leases: { name: string; holder: string; fence: Big; expires_at: Big };
  tenon_contexts: { id: string; context: string; expires_at: Big };
  tenon_audit: {
    seq: Big;
    at: string;
    kind: string;
    call_id: string;
    pass: number;
    server: string | null;
    tool: string | null;
    thread_id: string | null;
    data: string;
    previous: string;
    hash: string;
  };
  tenon_audit_head: { id: number; seq: Big; hash: string };
  tenon_audit_open: { call_id: string; pass: number; seq: Big; writer: string };
  tenon_tasks: {
    id: string;
    server: string;
    tool: string;
    owner: string;
    call_key: string | null;
    call_digest: string | null;
    call: string;
    ttl_ms: BigOrNull;
    poll_interval_ms: Big;
    status: TaskStatus;
    status_message: string | null;
    progress: string | null;
    created_at: Big;
    updated_at: Big;
    expires_at: BigOrNull;
    /** The questions of the last ask, and the answers to them so far. */
    asked: string | null;
    /** Every key a question of this task ever had on the wire. */
    used_keys: string;
    journal: string | null;
    result: string | null;
    error: string | null;
    fruitless: number;
    dead: number;
    due_at: Big;
    run_fence: BigOrNull;
    /** The job that stands for it in the queue of Postgres; any other one that names it is stale. */
    job: string | null;
  };
  tenon_task_steps: { task: string; step: string; result: string; fence: Big; at: Big };
}

/** The database, or a transaction on it. */
export type Queries = Kysely<Tables> | Transaction<Tables>;

/** Where the databases differ. */
export interface SqlSide {
  /** The database, ready for queries: migrated. */
  db(): Promise<Kysely<Tables>>;
  /**
   * Milliseconds by the one clock all users of the database share: for how long something lasts. It need not be the time of day.
   */
  now(db: Queries): Promise<number>;
  /** The same clock inside of a query, read when the query looks at a row. */
  clock(): RawBuilder<number>;
  /** The same clock, standing still within a statement. */
  moment(): RawBuilder<number>;
  /** The time of day inside of a query: for what people read, and nothing else. */
  wall(): RawBuilder<number>;
  /** Whether a row that is read to be written must be locked (`for update`); SQLite has locked the file already. */
  readonly lockRows: boolean;
  /** Waits until no other transaction has this lock, and has it until the end of this one; SQLite has locked the file already. */
  lock(trx: Queries, name: string): Promise<void>;
  /** Word of changes to whoever uses the database. */
  readonly signals: Signals;
  close(): Promise<void>;
}
