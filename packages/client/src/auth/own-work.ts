import { authError, reasonOf } from "./errors.ts";
import type { TokenStore } from "./store.ts";

/** Milliseconds that a function or a store of the program may take: what it waits for may never answer. */
export const OWN_WORK_MS = 30_000;

/**
 * What a function of the program gives, in time.
 * @param what as it is named in errors, such as `"the function given to bearer()"`
 * @throws AuthError `token_unavailable` when it fails, or gives nothing within `OWN_WORK_MS`
 */
export async function ownWork<T>(server: string, what: string, work: () => T | Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const message = `${what} gave nothing within ${OWN_WORK_MS / 1_000} s; give what it waits for an end`;
      reject(authError(server, "token_unavailable", message, { retryable: true }));
    }, OWN_WORK_MS);
  });
  const given = (async () => {
    try {
      return await work();
    } catch (error) {
      throw authError(server, "token_unavailable", `${what} failed: ${reasonOf(error)}`, { cause: error });
    }
  })();
  try {
    return await Promise.race([given, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A store whose reads and writes end. */
export function timelyStore(server: string, store: TokenStore): TokenStore {
  return {
    durable: store.durable,
    get: (key) => ownWork(server, "reading the token store", () => store.get(key)),
    set: (key, value) => ownWork(server, "writing the token store", () => store.set(key, value)),
    exclusively: (key, work) => store.exclusively(key, work),
  };
}
