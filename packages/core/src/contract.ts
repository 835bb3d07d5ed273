/**
 * `@tenon/core/contract`: the context contract (extension `dev.tenon/context`), as both sides need it: declaration, keys,
 * signature, and what is wrong with a context. No I/O.
 */
export {
  type ContextFault,
  contextError,
  contextFault,
  MAX_CONTEXT_BYTES,
  schemaConflicts,
} from "./contract/context.ts";
export {
  CAPABILITY_OF,
  CONTRACT_EXTENSION,
  CONTRACT_VERSIONS,
  type ContractCapability,
  type ContractDeclaration,
  type ContractSignature,
  type ContractVersion,
  readDeclaration,
  type SignatureAlgorithm,
} from "./contract/declaration.ts";
export {
  type ContractKey,
  newContractKey,
  plainSecretKey,
  publicContractKey,
  readContractKeys,
  writeContractKeys,
} from "./contract/keys.ts";
export {
  createKeyRing,
  type KeyRing,
  type SignatureFault,
  signedBytes,
  verifyDeclaration,
} from "./contract/signature.ts";
