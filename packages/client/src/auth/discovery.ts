import {
  type AuthorizationServerMetadata,
  checkResourceAllowed,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  type FetchLike,
  type OAuthProtectedResourceMetadata,
  resourceUrlFromServerUrl,
} from "@modelcontextprotocol/client";
import { shownValue } from "@tenon/core/internal";
import { asAuthError, authError } from "./errors.ts";
import type { Guard } from "./guard.ts";
import type { AuthTarget } from "./types.ts";

/** Where tokens for a server come from, and what they are for. */
export interface Discovered {
  readonly issuer: string;
  readonly metadata: AuthorizationServerMetadata;
  /** The resource to name in requests for tokens (RFC 8707), exactly as the server writes it. */
  readonly resource: string;
  readonly scopesSupported: readonly string[] | undefined;
}

const FAILED = { code: "discovery_failed", doing: "looking for its authorization server" };

/** Metadata of an authorization server whose `issuer` is the one that was asked for, to the letter (RFC 8414 section 3.3). */
export async function discoverIssuer(
  server: string,
  issuer: string,
  guard: Guard,
  derived = false,
): Promise<AuthorizationServerMetadata> {
  guard.check(issuer, "authorization server");
  let metadata: AuthorizationServerMetadata | undefined;
  try {
    metadata = await discoverAuthorizationServerMetadata(issuer, { fetchFn: guard.fetch });
  } catch (error) {
    throw asAuthError(server, error, FAILED);
  }
  if (!metadata) {
    throw authError(
      server,
      "discovery_failed",
      `${shownValue(issuer, 200)} publishes no metadata of an authorization server (RFC 8414 or OpenID Connect); ask who runs ` +
        "the server for its sign-in address, or give this client a token (bearer)",
    );
  }
  // the SDK takes a slash more or less for the same issuer
  if (!derived && metadata.issuer !== issuer) {
    throw authError(
      server,
      "issuer_mismatch",
      `it names the authorization server ${shownValue(issuer, 200)}, whose metadata says ${shownValue(metadata.issuer, 200)}. ` +
        "If both are the same, set `issuer` to what the metadata says",
      { data: { expected: issuer } },
    );
  }
  return metadata;
}

/** Metadata of the protected resource (RFC 9728) and where it was, or undefined where a server has none. */
async function discoverResource(
  { server, config }: AuthTarget,
  resourceMetadataUrl: URL | undefined,
  guard: Guard,
): Promise<{ readonly described: OAuthProtectedResourceMetadata; readonly place: URL } | undefined> {
  let status = 0;
  let place = new URL(config.url);
  const fetchFn: FetchLike = async (url, init) => {
    const answer = await guard.fetch(url, init);
    status = answer.status;
    place = new URL(url);
    return answer;
  };
  try {
    const options = resourceMetadataUrl ? { resourceMetadataUrl } : {};
    const described = await discoverOAuthProtectedResourceMetadata(config.url, options, fetchFn);
    return { described, place };
  } catch (error) {
    const none = resourceMetadataUrl === undefined && status >= 300 && status < 500;
    if (none) return undefined;
    throw asAuthError(server, error, FAILED);
  }
}

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
const withoutSlash = (path: string): string => path.replace(/\/$/, "");

/**
 * Whether metadata speaks of the server at `own`. Its resource is that address, or a parent of it whose metadata stands where that
 * parent's belongs (RFC 9728, section 3.3; the revision has clients look at the root, too). From anywhere else, one of several
 * tenants of a host could have tokens made for the whole host, and use them at the others.
 */
export function describes(resource: string, own: URL, place: URL): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname } = new URL(resource);
  if (origin === own.origin && withoutSlash(pathname) === withoutSlash(own.pathname)) return true;
  const belongs = place.origin === origin && withoutSlash(place.pathname) === `${WELL_KNOWN}${withoutSlash(pathname)}`;
  return belongs && checkResourceAllowed({ requestedResource: own, configuredResource: resource });
}

/** The authorization server to use of those a server names. */
function chooseIssuer(server: string, named: readonly string[] | undefined, wanted: string | undefined) {
  if (!named || named.length === 0) return undefined;
  if (wanted === undefined) return named[0];
  const same = (one: string) => one === wanted || one === `${wanted}/` || `${one}/` === wanted;
  if (named.some(same)) return wanted;
  throw authError(
    server,
    "issuer_mismatch",
    `it names ${shownValue(named, 300)} as its authorization servers, and \`issuer\` is configured as ${shownValue(wanted, 200)}; ` +
      "no credential was sent. Ask who runs the server which one is right",
    { data: { expected: wanted } },
  );
}

/**
 * Finds the authorization server of a server, in the order of the revision: the metadata its challenge names or at the
 * well-known places (RFC 9728), then the authorization server's own (RFC 8414, OpenID Connect). A server of revision
 * 2025-03-26 without the former is its own authorization server.
 * @param issuer the only one that may be used
 * @throws AuthError `discovery_failed`, `resource_mismatch`, `issuer_mismatch`, `unsafe_url`
 */
export async function discover(
  target: AuthTarget,
  guard: Guard,
  { resourceMetadataUrl, issuer: wanted }: { resourceMetadataUrl?: URL | undefined; issuer?: string | undefined },
): Promise<Discovered> {
  const { server, config } = target;
  const own = resourceUrlFromServerUrl(config.url);
  const found = await discoverResource(target, resourceMetadataUrl, guard);
  const described = found?.described;
  if (found && !describes(found.described.resource, own, found.place)) {
    throw authError(
      server,
      "resource_mismatch",
      `its metadata describes ${shownValue(found.described.resource, 200)}, not ${own.origin}${own.pathname}: a token for that could be ` +
        "used elsewhere, so none was asked for. Check the configured address",
    );
  }
  const issuer = chooseIssuer(server, described?.authorization_servers, wanted);
  const derived = issuer === undefined;
  const metadata = await discoverIssuer(server, issuer ?? wanted ?? new URL("/", own).href, guard, derived && !wanted);
  return {
    issuer: metadata.issuer,
    metadata,
    resource: described?.resource ?? own.href,
    scopesSupported: described?.scopes_supported,
  };
}
