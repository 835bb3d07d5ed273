import type { EndpointConfig } from "../types/servers.ts";

/**
 * Lets at most `limit` pieces of work run at once, in the order they came; without a limit, all.
 *
 * @example
 * const turn = createQueue(1);
 * await Promise.all([turn(first), turn(second)]); // one after the other
 */
export function createQueue(limit: number | undefined): <T>(work: () => Promise<T>) => Promise<T> {
  if (limit === undefined) return (work) => work();
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    // whoever ends hands its place on, so that nobody can step in between
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}

/** How many calls a configured server is given at once; undefined for as many as there are. */
export function callsAtOnce(config: EndpointConfig): number | undefined {
  return "command" in config ? (config.pool ?? config.concurrency) : undefined;
}
