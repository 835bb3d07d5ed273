import { setTimeout as sleep } from "node:timers/promises";
import { ConnectionError, codeOf } from "@tenon/core";

/** Two transactions that waited for each other, or saw each other: the database ended one, and nothing of it happened. */
const COLLISIONS = ["40P01", "40001"];
const MOST_COLLISIONS = 5;

/**
 * Does work on a database, and once more when its connection was lost on the way; more often when it only collided with
 * somebody else's.
 * @param idempotent whether doing it twice is the same as doing it once; if not, it is done again only when nothing has happened
 */
export async function withRetry<T>(
  work: () => Promise<T>,
  { idempotent }: { readonly idempotent: boolean },
): Promise<T> {
  let lost = 0;
  for (let collisions = 0; ; ) {
    try {
      return await work();
    } catch (error) {
      if (COLLISIONS.includes(codeOf(error) ?? "") && ++collisions < MOST_COLLISIONS) {
        await sleep(Math.random() * 20 * collisions);
        continue;
      }
      const again =
        error instanceof ConnectionError &&
        error.code === "connection_lost" &&
        (idempotent || error.maybeExecuted === false) &&
        ++lost === 1;
      if (!again) throw error;
    }
  }
}
