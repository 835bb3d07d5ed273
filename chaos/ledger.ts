import { join } from "node:path";
import Database from "better-sqlite3";
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
  /** What is wrong with the files themselves. */
  damage(): Promise<readonly string[]>;
}

export function sqliteLedger(data: string): Ledger {
  const files = ["orders.sqlite", "threads.sqlite", "leases.sqlite"];
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
    refunds: async () => all<Refund>("select order_id, amount, reason from refunds"),
    messages: async () => all<Message>("select content, status from sms_outbox"),
    async damage() {
      return files.flatMap((file) => {
        const found = open(file, (database) => database.pragma("integrity_check", { simple: true }));
        return found === "ok" ? [] : [`${file}: ${String(found)}`];
      });
    },
  };
}
