export { hasScope, type ScopeHierarchy } from "../definition/scopes.ts";
export { anyOf } from "./any-of.ts";
export { type IntrospectionOptions, introspection } from "./introspection.ts";
export { type JwtOptions, jwt } from "./jwt.ts";
export type { Algorithm, KeySet, PublicKey } from "./keys.ts";
export type { AcceptOptions } from "./options.ts";
export { unsafeToken } from "./token.ts";
export type { InvalidReason, TokenVerifier, VerifiedToken } from "./types.ts";
