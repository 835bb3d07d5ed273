import { covers, isScope } from "../definition/scopes.ts";

/** Why a request was refused, in the words of RFC 6750, section 3.1. */
export type BearerError = "invalid_request" | "invalid_token" | "insufficient_scope";

/** Characters of a description in a header: it may repeat a name of the request's, and no client reads headers without end. */
const MAX_DESCRIPTION = 300;

/** What goes between the quotes of a header: no quote, no backslash, printable ASCII. */
const quotable = (text: string): string => text.replaceAll(/["\\]/g, "'").replaceAll(/[^\x20-\x7e]/g, " ");

/**
 * The `WWW-Authenticate` header of a refusal (RFC 6750, section 3; RFC 9728, section 5.1).
 * @param about without an error: the request brought no token
 */
export function challenge(about: {
  readonly error?: BearerError | undefined;
  readonly description?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly metadataUrl: string | undefined;
}): string {
  const { error, description, scopes = [], metadataUrl } = about;
  const scope = scopes.filter(isScope).join(" ");
  const parts = [
    ...(error !== undefined ? [`error="${error}"`] : []),
    ...(scope !== "" ? [`scope="${scope}"`] : []),
    ...(metadataUrl !== undefined ? [`resource_metadata="${quotable(metadataUrl)}"`] : []),
    // last: it may repeat a name of the request's, and many clients take the first text that looks like a parameter for one
    ...(error !== undefined && description !== undefined
      ? [`error_description="${quotable(description.slice(0, MAX_DESCRIPTION))}"`]
      : []),
  ];
  return parts.length === 0 ? "Bearer" : `Bearer ${parts.join(", ")}`;
}

/** A right to new tokens is no right to a resource: servers should not ask for it (2026-07-28, refresh tokens). */
const OFFLINE = "offline_access";

/**
 * The scopes a challenge names: all that the operation needs, and those of the granted ones that this server knows, since a
 * client of an older revision asks for nothing but what the challenge says and would lose them. Scopes for others stay unsaid.
 */
export function challengedScopes(
  needed: Iterable<string>,
  granted: readonly string[],
  known: ReadonlySet<string>,
): string[] {
  const relevant = granted.filter((scope) => [...known].some((one) => covers(scope, one)));
  return [...new Set([...needed, ...relevant])].filter((scope) => scope !== OFFLINE);
}
