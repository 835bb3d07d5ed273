import { publicUrlOf } from "../http/forwarding.ts";
import { challenge } from "./challenge.ts";
import type { Gate, Refused } from "./gate.ts";
import { createMetadata, type Metadata, metadataUrlOf } from "./metadata.ts";
import type { TokenVerifier } from "./types.ts";

/** What a server with a token check answers besides the protocol. */
export interface AuthFront extends Gate {
  /** Whether a path is one of the server's metadata (RFC 9728). @param endpoint path of the MCP endpoint, where it is known */
  isMetadata: Metadata["isAt"];
  /** The server's metadata. */
  metadata(request: Request, endpoint: string | undefined): Response;
  /** The answer to a request that may not come in. */
  refuse(refused: Refused, request: Request): Response;
  /** Where a client finds the server's metadata. */
  metadataUrl(request: Request): string;
}

/** Seconds after which a client may try again when its token could not be checked. */
const RETRY_AFTER_SECONDS = 5;
const HTTP_ERROR = -32_000;

/**
 * @param gate decides about tokens
 * @param name of the server, for people
 */
export function createFront(verifier: TokenVerifier, gate: Gate, name: string): AuthFront {
  const metadata = createMetadata(verifier, name);
  const fixed = verifier.resource;
  /** The server's address: as it was configured, else as this request wrote it (its host is one of the allowed ones). */
  const addressOf = (request: Request, at?: string): string => {
    if (fixed !== undefined) return fixed;
    const { origin, pathname } = publicUrlOf(request);
    const path = at ?? pathname;
    return path === "/" ? origin : `${origin}${path}`;
  };
  const metadataUrl = (request: Request): string => metadataUrlOf(addressOf(request));
  return {
    ...gate,
    isMetadata: metadata.isAt,
    metadataUrl,
    metadata(request, endpoint) {
      const { pathname } = new URL(request.url);
      const [, of = ""] = /^\/\.well-known\/oauth-protected-resource(\/.*)?$/.exec(pathname) ?? [];
      return metadata.answer(request, addressOf(request, of === "" ? (endpoint ?? "/") : of));
    },
    refuse({ status, error, message, scopes }, request) {
      const reason = error ?? (status === 401 ? "token_missing" : "auth_unavailable");
      const data = { reason, ...(error === "insufficient_scope" && { scopes }) };
      const headers: Record<string, string> =
        status === 503
          ? { "retry-after": String(RETRY_AFTER_SECONDS) } // a new token would not help
          : {
              "www-authenticate": challenge({ error, description: message, scopes, metadataUrl: metadataUrl(request) }),
            };
      const body = { jsonrpc: "2.0", id: null, error: { code: HTTP_ERROR, message, data } };
      return Response.json(body, { status, headers: { ...headers, "cache-control": "no-store" } });
    },
  };
}
