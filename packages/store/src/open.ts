import { join } from "node:path";
import { ConfigError, codeOf } from "@tenon/core";
import { anything, checkOptions, type OptionChecks, text } from "@tenon/core/internal";
import type { Stores } from "./stores.ts";

/** Where a program keeps what must outlive it. */
export interface OpenOptions {
  /** Folder of the SQLite file, made when there is none; not used with Postgres. */
  directory: string;
  /** Name of the SQLite file in the folder. Default `tenon.sqlite`. */
  file?: string;
  /** Address of a Postgres database that machines share. Default: `TENON_DATABASE_URL`; without either, SQLite. */
  url?: string;
  /** Schema of the tables in Postgres. Default: `TENON_DATABASE_SCHEMA`, else `tenon`. */
  schema?: string;
  /** Milliseconds a claim on an outcome or the run of a task lasts unless it is renewed. Default 15 seconds. */
  leaseMs?: number;
}

const OPTIONS: OptionChecks<OpenOptions> = {
  directory: text,
  file: text,
  url: text,
  schema: text,
  leaseMs: anything,
};

/** Imports a driver's module, or says which package is missing. */
async function load<T>(module: () => Promise<T>, what: string, packages: string): Promise<T> {
  try {
    return await module();
  } catch (error) {
    if (codeOf(error) !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new ConfigError(`Keeping things in ${what} needs packages that are not installed: npm install ${packages}`, {
      code: "missing_package",
      cause: error,
    });
  }
}

/**
 * All stores of a program, where its surroundings say: in Postgres when there is an address, else in a file of the data
 * directory. Only the driver that is needed is loaded. Postgres is reached at first use.
 *
 * @throws ConfigError for an unknown option, `no_directory` without a place for the file, `missing_package` naming what to install
 * @example await using stores = await openStores({ directory: ".tenon" });
 */
export async function openStores(options: OpenOptions): Promise<Stores> {
  checkOptions(options, OPTIONS, "openStores(options)");
  const { directory, file = "tenon.sqlite", url = process.env.TENON_DATABASE_URL, leaseMs } = options;
  const lease = leaseMs === undefined ? {} : { leaseMs };
  if (url !== undefined && url !== "") {
    const schema = options.schema ?? process.env.TENON_DATABASE_SCHEMA;
    const { openPostgres } = await load(() => import("./postgres.ts"), "Postgres", "pg pg-boss@10");
    return openPostgres({ url, ...(schema !== undefined && schema !== "" && { schema }), ...lease });
  }
  if (typeof directory !== "string" || directory === "") {
    throw new ConfigError(
      "openStores needs options.directory, the folder to keep things in, or the address of a Postgres database in " +
        "options.url or TENON_DATABASE_URL",
      { code: "no_directory" },
    );
  }
  const { openSqlite } = await load(() => import("./sqlite.ts"), "SQLite", "better-sqlite3");
  return openSqlite({ path: join(directory, file), ...lease });
}
