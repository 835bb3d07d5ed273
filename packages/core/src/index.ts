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
export { canonicalJson, digest, isRecord, type Json, JsonError, type JsonObject, jsonSize, toJson } from "./json.ts";
export { resolvePointer, subschemas } from "./json-schema/document.ts";
export {
  describeFault,
  type SchemaDialect,
  type SchemaFault,
  type SchemaRules,
  type SchemaSurvey,
  surveySchema,
} from "./json-schema/survey.ts";
export { LOG_LEVELS } from "./log-levels.ts";
export { type Era, LEGACY_REVISION, META, MODERN_REVISION } from "./meta.ts";
export {
  anything,
  callable,
  checkOptions,
  didYouMean,
  flag,
  kindOf,
  milliseconds,
  type OptionCheck,
  type OptionChecks,
  oneOf,
  positive,
  refuseOption,
  text,
} from "./options.ts";
export { compilePattern, isRiskyPattern, type PatternVerdict, testPattern, withinTime } from "./pattern.ts";
export {
  describeIssues,
  type Infer,
  type IssueWords,
  isSchema,
  issueMessage,
  issuePath,
  jsonSchemaOf,
  type Schema,
  type SchemaIssue,
  validate,
  valueAt,
  type WrongField,
  wrongFields,
} from "./schema.ts";
export { cleanText, shownValue, visibleText } from "./text.ts";
