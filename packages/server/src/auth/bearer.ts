import type { Caller } from "../handler/context.ts";

/** Characters of one token: far above what issuers write, far below what is work to read. */
const MAX_TOKEN_CHARS = 16 * 1024;

/** What a request says about its token (RFC 6750, section 2.1). */
export type Bearer =
  | { readonly token: string }
  /** It has none, or speaks another scheme: it may not have known that one is needed. */
  | { readonly missing: true }
  /** It tried, in a way nobody may. */
  | { readonly malformed: string };

const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i;
const NONE: Bearer = { missing: true };

/**
 * Reads the token of a request. It is taken from one `Authorization` header and from nowhere else (2026-07-28, access token usage).
 * @param header undefined when there is none; several joined by commas, as web headers hold them, are refused: a token has no comma
 * @param address the request's path and query, or the whole of it
 */
export function readBearer(header: string | undefined, address: string): Bearer {
  const query = address.indexOf("?");
  if (query !== -1 && /[?&]access_token=/i.test(address.slice(query))) {
    return { malformed: "A token in the address ends in logs; it must be in the Authorization header, and a new one" };
  }
  if (header === undefined) return NONE;
  if (header.length > MAX_TOKEN_CHARS + 16) {
    return { malformed: `The Authorization header is longer than ${MAX_TOKEN_CHARS} characters` };
  }
  const [, token] = BEARER.exec(header) ?? [];
  if (token !== undefined) return { token };
  // any mention of the scheme counts: of two headers, only one may be of another
  if (!/(^|,) *bearer\b/i.test(header)) return NONE;
  return { malformed: "Expected one Authorization header: Bearer, a blank and the token" };
}

/** The one `Authorization` header of a node request, or all of them joined: Node itself would drop all but the first. */
export function authorizationOf(rawHeaders: readonly string[]): string | undefined {
  let found: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length !== 13 || (name !== "Authorization" && name.toLowerCase() !== "authorization")) continue;
    found = found === undefined ? rawHeaders[i + 1] : `${found}, ${rawHeaders[i + 1]}`;
  }
  return found;
}

/** Headers that carry a right to something: where a caller was verified no handler, middleware or rule sees them. */
export const CREDENTIAL_HEADERS: readonly string[] = ["authorization", "proxy-authorization", "cookie"];

/**
 * Headers as handlers, middleware and rules see them. Whoever checks tokens (this server's `auth`, or the program that named the
 * caller) is done with them; sent on by accident, they would open other doors. Where nobody checks, they are for the handler.
 */
export function shownHeaders(
  headers: Headers | undefined,
  { authenticated, caller }: { readonly authenticated: boolean; readonly caller: Caller | undefined },
): Headers | undefined {
  if (!headers || (!authenticated && !caller)) return headers;
  const rest = new Headers(headers);
  for (const name of CREDENTIAL_HEADERS) rest.delete(name);
  return rest;
}
