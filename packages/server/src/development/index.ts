/** Keys and tokens for development and tests, without a cloud account. A production server takes tokens of its identity provider. */
export {
  createSigningKey,
  loadSigningKey,
  type PublicJwk,
  publicJwks,
  publicPem,
  SIGNING_KEY_FILE,
  type SigningAlgorithm,
  type SigningKey,
  type SigningKeyFiles,
  saveSigningKey,
  signingKeyFiles,
} from "./keys.ts";
export { openSigningKey } from "./open-key.ts";
export { DEVELOPMENT_ISSUER, signToken, type TokenOptions } from "./tokens.ts";
