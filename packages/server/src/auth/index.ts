export { hasScope } from "../definition/scopes.ts";
export { anyOf } from "./any-of.ts";
export { type IntrospectionOptions, introspection } from "./introspection.ts";
export { type JwtOptions, jwt } from "./jwt.ts";
export type { KeySet, PublicKey } from "./keys.ts";
export { unsafeToken } from "./token.ts";
export type { TokenVerifier, VerifiedToken } from "./types.ts";
