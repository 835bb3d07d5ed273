export type { AuthorizationRequest, OnAuthorize } from "./authorize.ts";
export { type BearerOptions, bearer } from "./bearer.ts";
export { fileTokenStore } from "./file-store.ts";
export { type OAuthOptions, oauth } from "./oauth.ts";
export type { CommonOptions } from "./options.ts";
export {
  type AssertionRequest,
  type ClientCredentialsOptions,
  clientCredentials,
  type EnterpriseManagedOptions,
  enterpriseManaged,
  type IdentityProvider,
  type KeyClient,
  type SecretClient,
  type WorkloadIdentityOptions,
  workloadIdentity,
} from "./programs.ts";
export type { KnownClient } from "./registration.ts";
export { memoryTokenStore, type TokenStore } from "./store.ts";
export type { Auth, AuthKind, AuthSession, AuthTarget, Challenge, Credential, RefusedRequest } from "./types.ts";
