import { join } from "node:path";
import type { Stores } from "@tenon/store";
import { type Place, SCHEMA } from "./place.ts";

/** Connections of one process for what the libraries keep; one more listens. */
const CONNECTIONS = 5;

/** What the libraries keep (answered questions, idempotent calls, leases): in `<directory>/<file>`, or beside the desk's own tables. */
export async function openStores(place: Place, file: string): Promise<Stores> {
  // imported when used: what runs on one machine does without the driver of the other
  if (place.url === undefined) {
    return (await import("@tenon/store/sqlite")).openSqlite({ path: join(place.directory, file) });
  }
  const { url, schema = SCHEMA } = place;
  return (await import("@tenon/store/postgres")).openPostgres({ url, schema, maxConnections: CONNECTIONS });
}
