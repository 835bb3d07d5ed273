import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { codeOf, messageOf } from "@tenon/core";
import type { Stores } from "@tenon/store";
import { type Command, Option } from "commander";
import { dataDirectory } from "./data-directory.ts";
import { CommandError, usageError } from "./failure.ts";

/** Where a command finds what programs have kept. */
export interface PlaceFlags {
  readonly data?: string;
  readonly database?: string;
  readonly schema?: string;
}

/** What is looked for in a place. */
export interface Kept {
  /** Its files in a data directory; the first that is there is it. `tenon.sqlite` is what `openStores` makes. */
  readonly files: readonly string[];
  /** A table that is there if it is. */
  readonly table: string;
  /** For example "audit trail". */
  readonly name: string;
}

const SCHEMA = "tenon";
/** Milliseconds until a database counts as unreachable. */
const CONNECT_MS = 10_000;

/** Adds the options that say where: Postgres where an address is given, else files. The same as in every program of ours. */
export function addPlace(command: Command): Command {
  return command
    .option(
      "--data <directory|file>",
      "the program's data directory, or its SQLite file (default: TENON_DATA_DIR, else .tenon)",
    )
    .addOption(
      new Option(
        "--database <url>",
        "address of Postgres, where the program keeps things there; then not in files",
      ).env("TENON_DATABASE_URL"),
    )
    .addOption(
      new Option("--schema <name>", `schema of its tables in Postgres (default: ${SCHEMA})`).env(
        "TENON_DATABASE_SCHEMA",
      ),
    );
}

function failure(what: string, why: string, todo: string, cause?: unknown): CommandError {
  return new CommandError({ what, why, todo }, { code: cause === undefined ? "not_found" : "database", cause });
}

/** What a driver says; where a name has several addresses, each failed for itself. */
const said = (error: unknown): string =>
  messageOf(error) ||
  (error instanceof AggregateError ? error.errors.map(messageOf).join("; ") : (codeOf(error) ?? "?"));

async function openTables(url: string, schema: string, { table, name }: Kept, what: string): Promise<Stores> {
  if (!/^postgres(ql)?:\/\//.test(url)) {
    // it may hold a password
    throw usageError(
      "--database (or TENON_DATABASE_URL) is no address of Postgres",
      "give one like postgres://user@host:5432/name",
    );
  }
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_MS });
  client.on("error", () => undefined); // said by the query
  try {
    await client.connect();
    const { rows } = await client.query("select 1 from pg_tables where schemaname = $1 and tablename = $2", [
      schema,
      table,
    ]);
    if (rows.length === 0) {
      throw failure(
        what,
        `there is no ${name} in the schema ${schema} of that database`,
        "name the program's schema with --schema",
      );
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw failure(
      what,
      `the database cannot be reached: ${said(error)}`,
      "check --database (or TENON_DATABASE_URL), and that Postgres runs there",
      error,
    );
  } finally {
    await client.end().catch(() => undefined);
  }
  const { openPostgres } = await import("@tenon/store/postgres");
  return openPostgres({ url, schema, maxConnections: 3 });
}

const ELSEWHERE = "name the program's data directory or its SQLite file with --data, or its database with --database";

async function openFile(path: string, { table, name }: Kept, what: string): Promise<Stores> {
  const { default: Database } = await import("better-sqlite3");
  try {
    const database = new Database(path, { readonly: true, timeout: CONNECT_MS });
    try {
      const found = database.prepare("select 1 from sqlite_master where type = 'table' and name = ?").get(table);
      if (!found) throw failure(what, `there is no ${name} in ${path}`, ELSEWHERE);
    } finally {
      database.close();
    }
    const { openSqlite } = await import("@tenon/store/sqlite");
    return openSqlite({ path });
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw failure(what, `${path} cannot be opened: ${said(error)}`, ELSEWHERE, error);
  }
}

/**
 * Opens what is there, and makes nothing: a wrong place is an error, not an empty one.
 * @param what what is not done where that fails, for example "the audit trail was not checked"
 */
export async function openPlace(flags: PlaceFlags, kept: Kept, what: string): Promise<Stores> {
  const { data = dataDirectory(), database, schema } = flags;
  if (database) return openTables(database, schema || SCHEMA, kept, what);
  const isFile = statSync(data, { throwIfNoEntry: false })?.isFile() ?? false;
  if (isFile) return openFile(data, kept, what);
  const file = kept.files.find((one) => existsSync(join(data, one)));
  if (file === undefined)
    throw failure(what, `there is no ${kept.files.map((one) => join(data, one)).join(" or ")}`, ELSEWHERE);
  return openFile(join(data, file), kept, what);
}
