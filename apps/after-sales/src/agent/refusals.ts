import type { AgentInterceptor } from "@tenon/agent";
import { AuthError, isRecord } from "@tenon/core";
import type { ServerName } from "../servers/names.ts";
import type { Texts } from "../texts/index.ts";
import type { DeskContext } from "./interceptors.ts";
import { tokenVariable } from "./token-sources.ts";
import type { TokenClaims } from "./tokens.ts";

/** Codes of errors that say that a server did not take who asks, or not for this. */
const CODES = ["invalid_token", "unauthorized", "insufficient_scope", "forbidden", "token_unavailable"] as const;
/** Milliseconds that the clocks may differ when a token is called expired. */
const SKEW_MS = 30_000;

/** Whether an error is about the right to ask, by its code. */
export const isRefusal = (code: string | undefined): boolean => CODES.some((one) => one === code);

/** What is known about a refusal. */
export interface RefusalFacts {
  readonly code: string;
  /** Scopes that were missing, where they are known. */
  readonly scopes?: readonly string[];
  /** How the server is called on the screen. */
  readonly title: string;
  readonly server: ServerName;
  /** What the refused token says about itself; undefined where there is none. */
  readonly claims: TokenClaims | undefined;
}

/** A refusal in one sentence that a person and a model understand. */
export function explainRefusal({ code, scopes = [], title, server, claims }: RefusalFacts, t: Texts): string {
  if (code === "token_unavailable") return t.access.unreadable(title);
  if (code === "insufficient_scope" || code === "forbidden") {
    // a challenge names scopes that the token has, too, so that a client asks for them again
    const lacking = scopes.filter((scope) => claims?.scopes?.includes(scope) !== true);
    return t.access.lacking(title, lacking.join(" "));
  }
  if (claims === undefined) return t.access.needed(title, tokenVariable(server));
  const { issuer, audience, expiresAt } = claims;
  if (expiresAt !== undefined && expiresAt - SKEW_MS < Date.now()) {
    return t.access.expired(title, new Date(expiresAt).toLocaleString("sv-SE")); // 2026-01-31 09:30:00, local time
  }
  return issuer === undefined || audience === undefined
    ? t.access.refused(title)
    : t.access.issuedElsewhere(title, issuer, audience);
}

/** The scopes an error of the client names. */
export function scopesIn({ data }: AuthError): readonly string[] {
  const scopes = isRecord(data) ? data.scopes : undefined;
  return Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === "string") : [];
}

/**
 * Says a refusal in the user's language and without addresses and statuses: the model reads it, and so does the person.
 * @param explain the sentence for an error of a server
 */
export function sayRefusals(
  explain: (server: string, error: AuthError) => Promise<string>,
): AgentInterceptor<DeskContext> {
  return async (request, next) => {
    try {
      return await next(request);
    } catch (error) {
      if (!(error instanceof AuthError) || !isRefusal(error.code)) throw error;
      const { code, server, data } = error;
      throw new AuthError(await explain(request.server, error), {
        code,
        data,
        maybeExecuted: error.maybeExecuted ?? false,
        cause: error,
        ...(server !== undefined && { server }),
      });
    }
  };
}

/** Calls are made for the person whose tokens this desk has, and for nobody else. */
export function onlyFor(user: DeskContext): AgentInterceptor<DeskContext> {
  return (request, next) => {
    if (request.runtime.context?.userId === user.userId) return next(request);
    throw new AuthError("This desk acts for one person, and the run is another one's: open a desk for each person", {
      code: "other_user",
      server: request.server,
      maybeExecuted: false,
    });
  };
}
