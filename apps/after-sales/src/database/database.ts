import type { Place } from "./place.ts";
import type { DeskDatabase } from "./tables.ts";

/**
 * The desk's own tables: in `<directory>/orders.sqlite`, or in Postgres where the place has an address.
 * @throws ConfigError `code: "database"` for a file or an address that is none, `"schema_name"`
 */
export async function openDatabase(place: Place): Promise<DeskDatabase> {
  // imported when used: what runs on one machine does without the driver of the other
  if (place.url === undefined) return (await import("./sqlite.ts")).openSqliteDesk(place.directory);
  return (await import("./postgres.ts")).openPostgresDesk(place);
}
