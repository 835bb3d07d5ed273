import { IssuerMismatchError, OAuthError, RegistrationRejectedError } from "@modelcontextprotocol/client";
import { AuthError, isRecord, messageOf, TenonError } from "@tenon/core";
import { shownValue } from "@tenon/core/internal";
import type { RefusedRequest } from "./types.ts";

/** Characters of an authorization server's own words in an error. */
const MAX_SHOWN = 200;

/** An error about the authorisation of requests to one server; nothing ran. */
export function authError(
  server: string,
  code: string,
  message: string,
  more: { data?: unknown; cause?: unknown; retryable?: boolean } = {},
): AuthError {
  return new AuthError(`server "${server}": ${message}`, { code, server, maybeExecuted: false, ...more });
}

/**
 * The error for a request that needs scopes which its token has not (2026-07-28, scope challenge handling).
 * @param wanted the scopes as the server's challenge names them, if it does
 * @param say what happened and what to do, given the scopes as words that follow another: `""` or `" orders:read"`
 */
export function insufficientScope(
  server: string,
  wanted: string | undefined,
  say: (named: string) => string,
): AuthError {
  const scopes = wanted?.split(/\s+/).filter(Boolean) ?? [];
  const named = scopes.length > 0 ? ` ${shownValue(scopes.join(" "), 200)}` : "";
  return authError(server, "insufficient_scope", say(named), { data: { status: 403, scopes } });
}

/** The reason for a failure in words, without what must stay secret even where the other side repeats it. */
export function reasonOf(error: unknown, secrets: readonly (string | undefined)[] = []): string {
  let text = messageOf(error);
  for (const secret of secrets) if (secret) text = text.replaceAll(secret, "…");
  return shownValue(text, MAX_SHOWN).slice(1, -1);
}

/** Why a server refused a token, in its own words: short, visible, without the token; empty where it does not say. */
export function saidOf({ challenge, token }: RefusedRequest): string {
  return challenge.description === undefined ? "" : `; it says "${reasonOf(challenge.description, [token])}"`;
}

/** The `error` of an OAuth answer, if it is one of the registered form. */
function oauthCode(error: unknown): string | undefined {
  return error instanceof OAuthError && /^[a-z][a-z0-9_]{0,60}$/.test(error.code) ? error.code : undefined;
}

/** The same of an error of ours. */
export function oauthErrorOf(error: unknown): string | undefined {
  const data = error instanceof TenonError ? error.data : undefined;
  return isRecord(data) && typeof data.error === "string" ? data.error : undefined;
}

/** What a rejected registration says, without what was sent. */
function rejectionOf(error: RegistrationRejectedError): string {
  try {
    const body: unknown = JSON.parse(error.body);
    const said = isRecord(body) ? [body.error, body.error_description].filter((part) => typeof part === "string") : [];
    if (said.length > 0) return `HTTP ${error.status}, ${shownValue(said.join(": "), MAX_SHOWN)}`;
  } catch {
    // a web page, most likely
  }
  return `HTTP ${error.status}`;
}

/**
 * What the SDK threw as an error of ours. Its own error is not kept as the cause: it may repeat what was sent.
 * @param what was being done, with its code: `token_request_failed`, `registration_failed` …
 * @param secrets that were sent
 */
export function asAuthError(
  server: string,
  error: unknown,
  what: { readonly code: string; readonly doing: string },
  secrets: readonly (string | undefined)[] = [],
): TenonError {
  if (error instanceof TenonError) return error;
  if (error instanceof IssuerMismatchError) {
    const where = error.kind === "metadata" ? "metadata" : "answer";
    return authError(
      server,
      "issuer_mismatch",
      `the authorization server's ${where} names another issuer than ${shownValue(error.expected)}; nothing was sent to ` +
        "it. Either it is misconfigured or somebody pretends to be it: ask who runs it, and set `issuer` to the right one",
      { data: { expected: error.expected } },
    );
  }
  if (error instanceof RegistrationRejectedError) {
    return authError(
      server,
      "registration_failed",
      `the authorization server did not register this client (${rejectionOf(error)}); register one there by hand and ` +
        "configure `client: { clientId }`",
      { data: { status: error.status } },
    );
  }
  const code = oauthCode(error);
  const reason = code === undefined ? reasonOf(error, secrets) : `${code}: ${reasonOf(error, secrets)}`;
  return authError(server, what.code, `${what.doing} failed (${reason})`, {
    data: code === undefined ? undefined : { error: code },
    retryable: code === undefined || code === "server_error" || code === "temporarily_unavailable",
  });
}
