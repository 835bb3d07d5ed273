import { ConfigError, isRecord, type Json } from "@tenon/core";
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

/**
 * Checks a caller that the program around the server vouches for.
 * @throws ConfigError `caller` naming the field that is wrong
 */
export function checkCaller(caller: Caller): void {
  const given: unknown = caller; // JavaScript may hand over anything
  const { subject, scopes, claims } = isRecord(given) ? given : {};
  const wrong =
    typeof subject !== "string" || subject === ""
      ? "subject must be a text that is not empty"
      : !Array.isArray(scopes) || scopes.some((scope) => typeof scope !== "string")
        ? "scopes must be a list of texts, [] for none"
        : !isRecord(claims)
          ? "claims must be an object, {} for none"
          : undefined;
  if (wrong !== undefined) throw new ConfigError(`fetch(request, { caller }): caller.${wrong}`, { code: "caller" });
}
