import type { Stores } from "@tenon/store";
import { openStores as open } from "@tenon/store/open";
import { type Place, SCHEMA } from "./place.ts";

/** What the libraries keep (answered questions, tasks, leases, audit): in `<directory>/<file>`, or beside the desk's own tables. */
export function openStores({ directory, url, schema = SCHEMA }: Place, file: string): Promise<Stores> {
  return open({ directory, file, ...(url !== undefined && { url }), schema });
}
