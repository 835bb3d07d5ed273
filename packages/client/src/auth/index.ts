export type { AuthorizationRequest, OnAuthorize } from "./authorize.ts";
export { type BearerOptions, bearer } from "./bearer.ts";
export { fileTokenStore } from "./file-store.ts";
export { type OAuthOptions, oauth } from "./oauth.ts";
export {
  type AssertionRequest,
  type ClientCredentialsOptions,
  clientCredentials,
  type EnterpriseManagedOptions,
  enterpriseManaged,
  type IdentityProvider,
  type WorkloadIdentityOptions,
  workloadIdentity,
} from "./programs.ts";
export { memoryTokenStore, type TokenStore } from "./store.ts";
export type { Auth } from "./types.ts";
