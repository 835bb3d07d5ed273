import { META } from "@tenon/core";
import type { Middleware } from "./onion.ts";

/**
 * Says how long the server took: `_meta["dev.tenon/duration-ms"]` on every result, and a debug line in the server's own log.
 * Measures what is inside it, so add it first to measure everything.
 *
 * @example server.use(timing())
 */
export function timing(): Middleware {
  return async (request, next) => {
    const started = performance.now();
    const elapsed = (): number => Math.round((performance.now() - started) * 100) / 100;
    try {
      const result = await next();
      return { ...result, _meta: { ...result._meta, [META.durationMs]: elapsed() } };
    } finally {
      request.log("debug", `${request.method} took ${elapsed()} ms`, { name: request.name, durationMs: elapsed() });
    }
  };
}
