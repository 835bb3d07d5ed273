import type { Caller } from "../handler/context.ts";

/** Tokens by the caller of one request: whoever copies the caller does not copy its token. */
const tokens = new WeakMap<Caller, string>();

/** The caller of one request, whose token {@link unsafeToken} finds as long as the request lives. */
export function callerWith(verified: Caller, token: string): Caller {
  const caller = { ...verified };
  tokens.set(caller, token);
  return caller;
}

/**
 * The bearer token this request came with; undefined on stdio, in tests and where the embedding program named the caller.
 *
 * **You should not need it.** The token was issued for this server alone. To send it on to another service is token
 * passthrough, which the protocol forbids (2026-07-28, authorization, token handling): the other service could not tell your
 * server from its caller, and a service that takes it takes tokens that were not issued for it. To act elsewhere, get a token
 * for there: as yourself with client credentials (RFC 6749, section 4.4), or for the caller with token exchange (RFC 8693).
 * That exchange, made with the authorization server which issued the token, is the one good use of this function.
 *
 * @example const token = unsafeToken(ctx); // subject_token of a token exchange, nothing else
 */
export function unsafeToken(ctx: { readonly caller: Caller | undefined }): string | undefined {
  return ctx.caller && tokens.get(ctx.caller);
}
