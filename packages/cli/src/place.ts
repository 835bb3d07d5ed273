import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
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

/** Adds the options that say where: Postgres where an address is given, else files. */
export function addPlace(command: Command): Command {
  return command
    .option(
      "--data <directory|file>",
      "the data directory of the program, or the SQLite file itself (default: TENON_DATA_DIR, else .tenon)",
    )
    .addOption(
      new Option("--database <url>", "address of Postgres, where the program keeps things there").env(
        "TENON_DATABASE_URL",
      ),
    )
    .addOption(
      new Option("--schema <name>", "schema of the tables in Postgres (default: tenon)").env("TENON_DATABASE_SCHEMA"),
    );
}

const folderOf = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * Opens what is there, and makes nothing.
 * @param file its name in a data directory
 * @param what for example "no audit trail"
 */
export async function openPlace({ data, database, schema }: PlaceFlags, file: string, what: string): Promise<Stores> {
  // a directory that is named counts more than an address that lies in the environment
  if (database && data === undefined) {
    if (!/^postgres(ql)?:\/\//.test(database)) {
      throw usageError(
        `--database (or TENON_DATABASE_URL) is ${JSON.stringify(database.replace(/:\/\/.*/s, "://…"))}`,
        "give an address like postgres://user@host:5432/name",
      );
    }
    const { openPostgres } = await import("@tenon/store/postgres");
    return openPostgres({ url: database, maxConnections: 3, ...(schema && { schema }) });
  }
  const directory = data ?? dataDirectory();
  const path = data !== undefined && !folderOf(data) && existsSync(data) ? data : join(directory, file);
  if (!existsSync(path)) {
    throw new CommandError(
      {
        what,
        why: `there is no ${path}`,
        todo: "name the data directory of the program with --data, or its database with --database",
      },
      { code: "not_found" },
    );
  }
  const { openSqlite } = await import("@tenon/store/sqlite");
  return openSqlite({ path });
}
