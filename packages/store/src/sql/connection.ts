import { ConnectionError } from "@tenon/core";
import type { SqlSide } from "./side.ts";

/**
 * Lets several stores use one database; the last one to close ends it.
 * @param where names the database in errors
 * @returns gives a store its own access, to be closed by the store
 */
export function shareSide(where: string, side: SqlSide): () => SqlSide {
  let users = 0;
  return () => {
    users += 1;
    let closed = false;
    return {
      ...side,
      async db() {
        if (closed) throw new ConnectionError(`The store ${where} is closed`, { code: "store_closed" });
        return side.db();
      },
      async close() {
        if (closed) return;
        closed = true;
        users -= 1;
        if (users === 0) await side.close();
      },
    };
  };
}
