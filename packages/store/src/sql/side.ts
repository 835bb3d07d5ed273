import type { ColumnType, Kysely, Transaction } from "kysely";
import type { ClaimedBefore } from "../outcome/outcomes.ts";

/** pg reads a bigint as text; what we keep in one is far below 2^53. */
type Big = ColumnType<number | string, number, number>;

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
}

/** The database, or a transaction on it. */
export type Queries = Kysely<Tables> | Transaction<Tables>;

/** Where the databases differ. */
export interface SqlSide {
  /** The database, ready for queries: migrated. */
  db(): Promise<Kysely<Tables>>;
  /** Milliseconds by the one clock all users of the database share. */
  now(db: Queries): Promise<number>;
  /** Whether a row that is read to be written must be locked (`for update`); SQLite has locked the file already. */
  readonly lockRows: boolean;
  /** Waits until no other transaction has this lock, and has it until the end of this one; SQLite has locked the file already. */
  lock(trx: Queries, name: string): Promise<void>;
  close(): Promise<void>;
}
