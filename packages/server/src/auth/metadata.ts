import type { TokenVerifier } from "./types.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
const METHODS = "GET, HEAD, OPTIONS";
/** Seconds a client may keep the metadata: it changes with the configuration. */
const MAX_AGE_SECONDS = 300;

const pathPart = (pathname: string): string => pathname.replace(/\/+$/, "");

/** Where the metadata of a resource is (RFC 9728, section 3.1): between its host and its path. */
export function metadataUrlOf(resource: string): string {
  const { origin, pathname, search } = new URL(resource);
  return `${origin}${WELL_KNOWN}${pathPart(pathname)}${search}`;
}

/** What a server says about itself to clients without a token. */
export interface Metadata {
  /** Whether a path is one of this document's. @param endpoint path of the MCP endpoint, where it is known */
  isAt(pathname: string, endpoint: string | undefined): boolean;
  /** Answers a request for the document: open to everybody, from every page. @param resource the server's address */
  answer(request: Request, resource: string): Response;
}

/** @param name for people (`resource_name`) */
export function createMetadata(verifier: TokenVerifier, name: string): Metadata {
  const own = verifier.resource === undefined ? "" : pathPart(new URL(verifier.resource).pathname);
  // RFC 9728 wants addresses: an issuer that is only a name has nothing to be found at
  const servers = verifier.issuers.filter((issuer) => URL.canParse(issuer));
  const supported = verifier.scopesSupported.filter((scope) => scope !== "offline_access");
  return {
    isAt(pathname, endpoint) {
      if (!pathname.startsWith(WELL_KNOWN)) return false;
      const of = pathPart(pathname.slice(WELL_KNOWN.length));
      return of === "" || of === own || (endpoint !== undefined && of === pathPart(endpoint));
    },
    answer(request, resource) {
      const open = { "access-control-allow-origin": "*" };
      if (request.method === "OPTIONS") {
        const wanted = request.headers.get("access-control-request-headers");
        return new Response(null, {
          status: 204,
          headers: {
            ...open,
            "access-control-allow-methods": METHODS,
            ...(wanted !== null && { "access-control-allow-headers": wanted, vary: "Access-Control-Request-Headers" }),
          },
        });
      }
      if (request.method !== "GET" && request.method !== "HEAD") {
        return Response.json({ error: "Use GET" }, { status: 405, headers: { ...open, allow: METHODS } });
      }
      const document = {
        resource,
        ...(servers.length > 0 && { authorization_servers: servers }),
        ...(supported.length > 0 && { scopes_supported: supported }),
        bearer_methods_supported: ["header"],
        resource_name: name,
      };
      const response = Response.json(document, {
        headers: { ...open, "cache-control": `public, max-age=${MAX_AGE_SECONDS}` },
      });
      return request.method === "HEAD" ? new Response(null, { headers: response.headers }) : response;
    },
  };
}
