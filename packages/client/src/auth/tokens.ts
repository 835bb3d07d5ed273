import { fetchToken, type OAuthClientProvider, type OAuthTokens } from "@modelcontextprotocol/client";
import { asAuthError } from "./errors.ts";
import type { Order } from "./keeper.ts";

/** Where a request for tokens goes, in words. */
export const ASKING = (issuer: string) => ({ code: "token_request_failed", doing: `asking ${issuer} for a token` });

/**
 * Asks for tokens without a person, in the way of one of the SDK's providers.
 * @param secrets must not come back in an error
 * @throws AuthError `token_request_failed`, `unsafe_url`
 */
export async function requestTokens(
  { server, issuer, metadata, resource, scope, guard, dpop }: Order,
  provider: OAuthClientProvider,
  secrets: readonly (string | undefined)[],
): Promise<OAuthTokens> {
  guard.check(metadata.token_endpoint, "token endpoint");
  // the SDK binds the token request to the key when its provider has one
  const bound = dpop ? Object.assign(provider, { dpop: () => dpop }) : provider;
  try {
    return await fetchToken(bound, issuer, {
      metadata,
      resource, // as text: a URL would add a slash to an address without a path
      fetchFn: guard.fetch,
      ...(scope !== undefined && { scope }),
    });
  } catch (error) {
    throw asAuthError(server, error, ASKING(issuer), secrets);
  }
}
