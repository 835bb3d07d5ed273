import { createHash } from "node:crypto";
import { ConfigError } from "@tenon/core";
import type { DeskDatabase } from "./tables.ts";

/** Says which key it is without saying the key: it is as long and as random as its digest. */
const fingerprint = (key: string): string => createHash("sha256").update(`state key ${key}`).digest("base64url");

/**
 * Notes which key the processes of a server seal questions with, so that one with other keys does not start: what it asks, no
 * other one could read the answer to.
 * @param keys newest first; with the noted key among them it may be changed, process by process
 * @throws ConfigError `code: "state_keys"`
 */
export async function noteStateKeys(
  { db }: Pick<DeskDatabase, "db">,
  server: string,
  keys: readonly string[],
): Promise<void> {
  const [newest = "", ...older] = keys.map(fingerprint);
  const noted = await db.transaction().execute(async (transaction) => {
    await transaction
      .insertInto("desk_keys")
      .values({ server, fingerprint: newest })
      .onConflict((conflict) => conflict.column("server").doNothing())
      .execute();
    const found = await transaction
      .selectFrom("desk_keys")
      .select("fingerprint")
      .where("server", "=", server)
      .forUpdate()
      .executeTakeFirstOrThrow();
    if (!older.includes(found.fingerprint)) return found.fingerprint;
    await transaction.updateTable("desk_keys").set({ fingerprint: newest }).where("server", "=", server).execute();
    return newest;
  });
  if (noted === newest) return;
  throw new ConfigError(
    `The processes of the ${server} server on this database seal questions with another key than this one: give all of them the ` +
      "same TENON_STATE_KEYS. One that was started without has its key in the file state-keys of its data directory. Where that key is " +
      "lost, and with it the questions that are open, delete its row in desk_keys",
    { code: "state_keys" },
  );
}
