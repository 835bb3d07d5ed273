import type { HttpServerConfig } from "../types/servers.ts";

/** How a client proves who it is. */
export type AuthKind = "bearer" | "clientCredentials" | "enterpriseManaged" | "oauth" | "workloadIdentity";

/**
 * How requests to a server are authorised: what `bearer`, `oauth` and the others make, for `auth` of a server's configuration.
 * One value stands for one principal; it may serve several servers, each with tokens of its own.
 */
export interface Auth {
  readonly kind: AuthKind;
  /** Called by the client, once per server. */
  open(target: AuthTarget): AuthSession;
}

/** The server that requests are authorised for. */
export interface AuthTarget {
  /** Its configured name, for messages. */
  readonly server: string;
  readonly config: Pick<HttpServerConfig, "url" | "socketPath" | "ca" | "connectTimeoutMs">;
  /** Aborts when the client is closed. */
  readonly signal: AbortSignal;
}

/** What one request is sent with. */
export interface Credential {
  /** Names who it belongs to, the same when a token is renewed. Nothing learned under one is shown to another. */
  readonly principal: string;
  readonly token: string;
  /** The headers for a request. `url` is the address that is really asked, after redirects. */
  headers(method: string, url: URL): Record<string, string> | Promise<Record<string, string>>;
}

/** A server's answer 401, or 403 for want of scopes. */
export interface RefusedRequest {
  readonly status: 401 | 403;
  /** What its `WWW-Authenticate` says. */
  readonly challenge: Challenge;
  /** The token it was sent with. */
  readonly token: string | undefined;
}

/** The parts of a `WWW-Authenticate` header that say what to do (RFC 6750, RFC 9728). */
export interface Challenge {
  readonly resourceMetadataUrl?: URL;
  readonly scope?: string;
  readonly error?: string;
  /** Why, in the server's own words: untrusted, and of any length. */
  readonly description?: string;
}

/** The authorisation of one client's requests to one server. */
export interface AuthSession {
  /** What to send with the next request; undefined while there is none, and the server says what it wants. */
  credential(): Promise<Credential | undefined>;
  /** Looks at an answer; true when the same request is to be sent once more as it is (a DPoP nonce, RFC 9449 section 9). */
  again?(answer: Response, url: URL): boolean;
  /**
   * Makes the request worth sending again.
   * @param times how often the server has refused this request with this status, this time included
   * @throws AuthError when nothing more can be done
   */
  refused(refused: RefusedRequest, times: number): Promise<void>;
}
