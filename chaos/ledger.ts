import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Stores } from "@tenon/store";
import { openPostgres } from "@tenon/store/postgres";
import { openSqlite } from "@tenon/store/sqlite";
import Database from "better-sqlite3";
import pg from "pg";
import type { Order } from "./stories.ts";

/** A refund as the shop booked it. */
export interface Refund {
  readonly order_id: string;
  readonly amount: number;
  readonly reason: string;
}

/** A text message as the shop's outbox has it. */
export interface Message {
  readonly content: string;
  readonly status: string;
}

/** The tables of the shop, read from outside. */
export interface Ledger {
  /** Puts orders into the shop. */
  stock(orders: readonly Order[]): Promise<void>;
  refunds(): Promise<readonly Refund[]>;
  messages(): Promise<readonly Message[]>;
  /** Rows of one of the tables that the libraries keep, whichever file it is in; none where there is no such table. */
  kept(table: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** The trail that the agents write to, as the store itself reads it. */
  openAudit(): Promise<Stores>;
  /** What is wrong with the database itself. */
  damage(): Promise<readonly string[]>;
}

const REFUNDS = "select order_id, amount, reason from refunds";
const MESSAGES = "select content, status from sms_outbox";

/** The files that the desk keeps on one machine, where they exist. */
const FILES = ["orders.sqlite", "threads.sqlite", "leases.sqlite", "servers.sqlite", "audit.sqlite"];

/** @param data folder of the files */
export function sqliteLedger(data: string): Ledger {
  const files = () => FILES.filter((file) => existsSync(join(data, file)));
  function open<T>(file: string, work: (database: Database.Database) => T): T {
    const database = new Database(join(data, file), { timeout: 10_000 });
    try {
      return work(database);
    } finally {
      database.close();
    }
  }
  const all = <T>(sql: string): T[] => open("orders.sqlite", (database) => database.prepare<[], T>(sql).all());
  return {
    async stock(orders) {
      open("orders.sqlite", (database) => {
        const insert = database.prepare("insert into orders (id, status, amount) values (?, ?, ?)");
        database.transaction(() => {
          for (const { id, status, amount } of orders) insert.run(id, status, amount);
        })();
      });
    },
    refunds: async () => all<Refund>(REFUNDS),
    messages: async () => all<Message>(MESSAGES),
    async kept(table) {
      return files().flatMap((file) =>
        open(file, (database) => {
          const found = database.prepare("select 1 from sqlite_master where type = 'table' and name = ?").get(table);
          return found ? database.prepare<[], Record<string, unknown>>(`select * from ${table}`).all() : [];
        }),
      );
    },
    openAudit: async () => openSqlite({ path: join(data, "audit.sqlite") }),
    async damage() {
      return files().flatMap((file) => {
        const found = open(file, (database) => database.pragma("integrity_check", { simple: true }));
        return found === "ok" ? [] : [`${file}: ${String(found)}`];
      });
    },
  };
}

/** @param url of the cluster itself: nothing stands in between */
export function postgresLedger(url: string, schema: string): Ledger {
  async function open<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: url, options: `-c search_path=${schema}` });
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  }
  const all = <T extends pg.QueryResultRow>(sql: string): Promise<T[]> =>
    open(async (client) => (await client.query<T>(sql)).rows);
  return {
    async stock(orders) {
      await open((client) =>
        client.query(
          `insert into orders (id, status, amount)
           select * from unnest($1::text[], $2::text[], $3::int[])`,
          [orders.map(({ id }) => id), orders.map(({ status }) => status), orders.map(({ amount }) => amount)],
        ),
      );
    },
    refunds: () => all<Refund>(REFUNDS),
    messages: () => all<Message>(MESSAGES),
    async kept(table) {
      return open(async (client) => {
        const { rows } = await client.query("select to_regclass($1) as found", [table]);
        return rows[0]?.found === null ? [] : (await client.query(`select * from ${table}`)).rows;
      });
    },
    openAudit: async () => openPostgres({ url, schema }),
    async damage() {
      // a dump reads every row of every table
      return open(async (client) => {
        const { rows } = await client.query<{ name: string }>(
          "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')",
        );
        const broken: string[] = [];
        for (const { name } of rows) {
          await client
            .query(`select * from ${name}`)
            .catch((error: unknown) => broken.push(`${name}: ${String(error)}`));
        }
        return broken;
      });
    },
  };
}
