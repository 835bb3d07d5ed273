import { join } from "node:path";
import type { Stores } from "@tenon/store";
import { type Place, SCHEMA } from "./place.ts";

/** What the libraries keep (answered questions, idempotent calls, leases): in `<directory>/<file>`, or beside the desk's own tables. */
export async function openStores(place: Place, file: string): Promise<Stores> {
  // imported when used: what runs on one machine does without the driver of the other
  if (place.url === undefined) {
    return (await import("@tenon/store/sqlite")).openSqlite({ path: join(place.directory, file) });
  }
  return (await import("@tenon/store/postgres")).openPostgres({ url: place.url, schema: place.schema ?? SCHEMA });
}
