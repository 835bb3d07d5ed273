export {
  AuthError,
  ConfigError,
  ConnectionError,
  ContractError,
  deserializeError,
  ExecutionError,
  isRetryable,
  ProtocolError,
  type SerializedError,
  serializeError,
  TenonError,
  type TenonErrorOptions,
  TrustError,
} from "./errors.ts";
export { canonicalJson, digest, isRecord, type Json, JsonError, type JsonObject, toJson } from "./json.ts";
export { type AjvError, ajvIssues, expansion, resolvePointer, subschemas } from "./json-schema.ts";
export { type Era, LEGACY_REVISION, META, MODERN_REVISION } from "./meta.ts";
export { checkOptions, didYouMean, kindOf } from "./options.ts";
export { compilePattern, isRiskyPattern, type PatternVerdict, testPattern, withinTime } from "./pattern.ts";
export {
  describeIssues,
  type Infer,
  isSchema,
  issueMessage,
  issuePath,
  jsonSchemaOf,
  type Schema,
  type SchemaIssue,
  validate,
} from "./schema.ts";
export { cleanText, shownValue, visibleText } from "./text.ts";
