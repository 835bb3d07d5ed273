import type { ServerRequest } from "./onion.ts";

/** One caller as a key: subject and client from its token; callers without a token are one. */
export function callerKey({ caller }: ServerRequest): string {
  return caller ? JSON.stringify([caller.subject, caller.clientId ?? null]) : "";
}
