import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { openStateKeys } from "@tenon/server";
import type { Stores } from "@tenon/store";
import { openStores } from "@tenon/store/open";
import { dataDirectory, makeDataDirectory } from "../data-directory.ts";
import type { PlaceFlags } from "../place.ts";

/** What outlives the processes of a server. */
export interface Kept {
  readonly stores: Stores;
  /** Keys that seal waiting questions; undefined where TENON_STATE_KEYS has them. */
  readonly stateKeys: readonly string[] | undefined;
}

/** Opens, or makes, where a served file keeps things: Postgres where an address is given, else a file of the data directory. */
export async function openKept({ data = dataDirectory(), database, schema }: PlaceFlags): Promise<Kept> {
  const isFile = statSync(data, { throwIfNoEntry: false })?.isFile() ?? /\.(?:sqlite|db)$/.test(data);
  const directory = isFile ? dirname(data) : data;
  makeDataDirectory(directory);
  const stateKeys = process.env.TENON_STATE_KEYS ? undefined : openStateKeys(join(directory, "state-keys"));
  const stores = await openStores({
    directory,
    ...(isFile && { file: basename(data) }),
    ...(database && { url: database }),
    ...(schema && { schema }),
  });
  return { stores, stateKeys };
}
