import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";

/** With this, the same tests run on Postgres: each data directory has a schema of its own there, dropped with the directory. */
export const DESK_URL = process.env.TENON_TEST_DESK_URL;

/** The schema that belongs to a data directory. */
export function schemaOf(data: string): string {
  return `desk_${basename(data)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "_")}_${process.pid}`;
}

/** What a program that works on this data directory is told. */
export function placeVariables(data: string | undefined): Record<string, string> {
  if (DESK_URL === undefined || data === undefined) return {};
  return { TENON_DATABASE_URL: DESK_URL, TENON_DATABASE_SCHEMA: schemaOf(data) };
}

const ASK = `
  const [url, schema, sql] = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
  const client = new (require("pg").Client)(url);
  client.connect()
    .then(() => client.query("set search_path to " + schema))
    .then(() => client.query(sql))
    .then((result) => { process.stdout.write(JSON.stringify([result].flat().at(-1).rows)); return client.end(); })
    .catch((error) => { console.error(error.message); process.exit(1); });`;

/** Asks Postgres and waits: tests look at the rows between two lines, as they do in a file. */
function askPostgres(url: string, schema: string, sql: string): unknown {
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  const input = JSON.stringify([url, schema, sql]);
  return JSON.parse(execFileSync(process.execPath, ["-e", ASK], { cwd, input, encoding: "utf8" }));
}

/** Rows of the desk's tables. */
export function rows<T>(data: string, sql: string): T[] {
  if (DESK_URL !== undefined) return askPostgres(DESK_URL, schemaOf(data), sql) as T[]; // the caller knows its columns
  const database = new Database(join(data, "orders.sqlite"), { readonly: true });
  try {
    return database.prepare<[], T>(sql).all();
  } finally {
    database.close();
  }
}

/** Changes the desk's tables. */
export function change(data: string, sql: string): void {
  if (DESK_URL !== undefined) {
    askPostgres(DESK_URL, schemaOf(data), sql);
    return;
  }
  const database = new Database(join(data, "orders.sqlite"), { timeout: 5_000 });
  database.exec(sql);
  database.close();
}

/** Adds delivered orders. */
export function addOrders(data: string, ids: readonly string[], amount: number): void {
  const values = ids.map((id) => `('${id.replaceAll("'", "''")}', 'delivered', ${amount})`);
  change(data, `insert into orders (id, status, amount) values ${values.join(", ")}`);
}

const SLOW = {
  sqlite: `create trigger slow after insert on refunds begin
    select count(*) from (with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000) select i from n);
  end`,
  postgres: `create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.02); return new; end';
    create trigger slow after insert on refunds for each row execute function slow()`,
};

/** Makes every refund take a while, so that an end comes in the middle. */
export function slowRefunds(data: string): void {
  change(data, DESK_URL === undefined ? SLOW.sqlite : SLOW.postgres);
}

export function quickRefunds(data: string): void {
  change(data, DESK_URL === undefined ? "drop trigger slow" : "drop trigger slow on refunds");
}

/** Forgets everything that belongs to a data directory in Postgres; in files it goes with the directory. */
export function dropDesk(data: string): void {
  if (DESK_URL === undefined) return;
  const schema = schemaOf(data);
  askPostgres(
    DESK_URL,
    "public",
    `drop schema if exists ${schema} cascade; drop schema if exists ${schema}_jobs cascade`,
  );
}

/** Undoes all refunds and messages. */
export function forgetRefunds(data: string): void {
  if (DESK_URL === undefined) {
    if (existsSync(join(data, "orders.sqlite"))) change(data, "delete from refunds; delete from sms_outbox");
    return;
  }
  const schema = schemaOf(data);
  const made = `select 1 from pg_tables where schemaname = '${schema}' and tablename = 'sms_outbox'`;
  change(data, `do $$ begin if exists (${made}) then delete from refunds; delete from sms_outbox; end if; end $$`);
}
