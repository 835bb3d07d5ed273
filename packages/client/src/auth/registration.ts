import {
  type AuthorizationServerMetadata,
  type OAuthClientInformationMixed,
  type OAuthClientMetadata,
  registerClient,
} from "@modelcontextprotocol/client";
import { isLoopback } from "@tenon/core";
import { asAuthError, authError } from "./errors.ts";
import type { Guard } from "./guard.ts";
import { isStoredClient, type StoredClient, storeKeys, type TokenStore } from "./store.ts";

/** A client that an authorization server knows already. */
export interface KnownClient {
  /** Its id there. */
  clientId: string;
  /** Left out for a public client. */
  clientSecret?: string;
}

/** Who asks for tokens. */
export interface ClientIdentity {
  readonly info: OAuthClientInformationMixed;
  /** How it came about; what was registered may be registered anew. */
  readonly from: "configuration" | "document" | "registration";
  readonly redirectUrl?: string;
}

/** What the identity of a client is chosen from. */
export interface IdentityOptions {
  readonly server: string;
  readonly issuer: string;
  readonly metadata: AuthorizationServerMetadata;
  readonly guard: Guard;
  readonly store: TokenStore;
  readonly client: KnownClient | undefined;
  readonly clientMetadataUrl: string | undefined;
  readonly clientName: string;
}

function infoOf({ clientId, clientSecret, method }: StoredClient): OAuthClientInformationMixed {
  return {
    client_id: clientId,
    ...(clientSecret !== undefined && { client_secret: clientSecret }),
    ...(method !== undefined && { token_endpoint_auth_method: method }),
  };
}

/** The metadata document; one on this machine (http) can only be read by an authorization server that is there, too. */
function documentFor({ clientMetadataUrl, issuer }: IdentityOptions): string | undefined {
  const here = clientMetadataUrl?.startsWith("http:") === true;
  return here && !isLoopback(new URL(issuer).hostname) ? undefined : clientMetadataUrl;
}

/** The identity that needs no new registration: configured, or a metadata document, or registered before. */
export async function knownIdentity(options: IdentityOptions): Promise<ClientIdentity | undefined> {
  const { client, metadata, store, issuer } = options;
  if (client) {
    const { clientId, clientSecret } = client;
    return { info: infoOf({ clientId, ...(clientSecret !== undefined && { clientSecret }) }), from: "configuration" };
  }
  const document = documentFor(options);
  if (document !== undefined && metadata.client_id_metadata_document_supported === true) {
    return { info: { client_id: document }, from: "document" };
  }
  const kept = await store.get(storeKeys.client(issuer));
  const stored = isStoredClient(kept) ? kept : undefined;
  if (!stored || (stored.expiresAt !== undefined && stored.expiresAt < Date.now())) return undefined;
  const { redirectUrl } = stored;
  return { info: infoOf(stored), from: "registration", ...(redirectUrl !== undefined && { redirectUrl }) };
}

/** How this client would prove who it is: a public client where that is possible. Unsaid means basic (RFC 8414 section 2). */
function chosenMethod({ token_endpoint_auth_methods_supported: methods }: AuthorizationServerMetadata): string {
  const known = ["none", "client_secret_basic", "client_secret_post"];
  return known.find((method) => methods?.includes(method)) ?? "client_secret_basic";
}

/**
 * Registers this client (RFC 7591), the last resort. It names no scopes: what is registered may be the most that the client is ever
 * given, and which scopes its calls will need is not known yet.
 * @deprecated by the protocol in favour of client metadata documents; earliest removal 2027-07-28.
 * @throws AuthError `registration_failed`
 */
export async function register(
  { server, issuer, metadata, guard, store, clientName, clientMetadataUrl }: IdentityOptions,
  redirectUrl: string,
): Promise<ClientIdentity> {
  if (metadata.registration_endpoint === undefined) {
    const document = clientMetadataUrl === undefined ? "" : " and takes no client metadata documents";
    throw authError(
      server,
      "registration_failed",
      `the authorization server ${issuer} registers no clients by itself${document}; register this program there by hand ` +
        "and configure `client: { clientId }`",
    );
  }
  guard.check(metadata.registration_endpoint, "registration endpoint");
  const { protocol, hostname } = new URL(redirectUrl);
  const native = !protocol.startsWith("http") || isLoopback(hostname);
  const clientMetadata: OAuthClientMetadata = {
    client_name: clientName,
    redirect_uris: [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: chosenMethod(metadata),
    application_type: native ? "native" : "web",
  };
  try {
    const known = await registerClient(issuer, { metadata, clientMetadata, fetchFn: guard.fetch });
    const { client_id, client_secret, client_secret_expires_at: until, token_endpoint_auth_method: method } = known;
    const stored: StoredClient = {
      clientId: client_id,
      redirectUrl,
      ...(client_secret !== undefined && { clientSecret: client_secret }),
      ...(method !== undefined && { method }),
      ...(until !== undefined && until > 0 && { expiresAt: until * 1_000 }),
    };
    await store.set(storeKeys.client(issuer), stored);
    return { info: infoOf(stored), from: "registration", redirectUrl };
  } catch (error) {
    throw asAuthError(server, error, { code: "registration_failed", doing: "registering this client" });
  }
}
