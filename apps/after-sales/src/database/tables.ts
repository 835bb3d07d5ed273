import type { Generated, Kysely } from "kysely";

/** The desk's own tables, the same in both databases. Money is in fen, times are ISO 8601. */
export interface DeskTables {
  orders: { id: string; status: "delivered" | "in_delivery"; amount: number };
  /** At most one row an order. */
  refunds: {
    order_id: string;
    amount: number;
    reason: string;
    caller_id: string;
    idempotency_key: string;
    created_at: string;
  };
  sms_outbox: {
    id: Generated<number>;
    phone: string;
    content: string;
    caller_id: string;
    idempotency_key: string;
    status: "queued" | "sent" | "failed";
    created_at: string;
  };
  /** Where several machines share the database: which key each server's processes have in common. */
  desk_keys: { server: string; fingerprint: string };
}

/** One step of the tables' history. Never edited once released: a change is another step with a name of its own. */
interface Step {
  readonly name: string;
  /** SQL, in order. */
  readonly statements: readonly string[];
}

/** What differs between the databases: a number that counts itself up. */
type Dialect = "sqlite" | "postgres";
const COUNTED: Readonly<Record<Dialect, string>> = {
  sqlite: "integer primary key",
  postgres: "integer generated always as identity primary key",
};

const KEYS: Step = {
  name: "desk_keys_001",
  statements: ["create table desk_keys (server text primary key, fingerprint text not null)"],
};

/** What the tables have come to, oldest first. */
export const historyOf = (dialect: Dialect): readonly Step[] => [
  {
    name: "desk_001",
    statements: [
      `create table orders (
     id text primary key,
     status text not null check (status in ('delivered', 'in_delivery')),
     amount integer not null check (amount > 0) -- fen
   )`,
      `create table refunds (
     order_id text primary key references orders (id), -- at most one refund an order
     amount integer not null,
     reason text not null,
     caller_id text not null,
     idempotency_key text not null,
     created_at text not null
   )`,
      `create table sms_outbox (
     id ${COUNTED[dialect]},
     phone text not null,
     content text not null,
     caller_id text not null,
     idempotency_key text not null unique,
     status text not null check (status in ('queued', 'sent', 'failed')),
     created_at text not null
   )`,
      `insert into orders (id, status, amount) values
     ('ORD-001', 'delivered', 29900), ('ORD-002', 'delivered', 50000),
     ('ORD-003', 'delivered', 249900), ('ORD-004', 'in_delivery', 2900)`,
    ],
  },
  ...(dialect === "postgres" ? [KEYS] : []),
];

/** The desk's own tables, wherever they are kept. */
export interface DeskDatabase {
  /** For queries, once {@link ready} was waited for. */
  readonly db: Kysely<DeskTables>;
  /** Whether a row that is read to be written must be locked (`for update`); SQLite has one writer at a time. */
  readonly lockRows: boolean;
  /**
   * Makes the tables where there are none, with the first orders; one of several processes that start together does it.
   * @throws what the database says when it cannot be reached; the next call tries again
   */
  ready(): Promise<void>;
  close(): Promise<void>;
}
