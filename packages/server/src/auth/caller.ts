import type { Json } from "@tenon/core";
import type { Caller } from "../handler/context.ts";

/**
 * Who a caller is, as one value: what sessions, waiting questions, idempotency keys and limits belong to. The same subject at
 * two issuers is two callers. Callers without a token are one.
 */
export function identityOfCaller(caller: Caller | undefined): Json {
  if (!caller) return null;
  const { subject, clientId, issuer } = caller;
  return issuer === undefined ? [subject, clientId ?? null] : [subject, clientId ?? null, issuer];
}

/** {@link identityOfCaller} as a key; empty for callers without a token. */
export const callerKey = (caller: Caller | undefined): string => {
  const identity = identityOfCaller(caller);
  return identity === null ? "" : JSON.stringify(identity);
};
