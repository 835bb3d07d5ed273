export { keepNewest } from "./bounds.ts";
export {
  AuthError,
  ConfigError,
  ConnectionError,
  ContractError,
  codeOf,
  deserializeError,
  ExecutionError,
  isRetryable,
  messageOf,
  ProtocolError,
  type SerializedError,
  serializeError,
  TenonError,
  type TenonErrorOptions,
  TrustError,
} from "./errors.ts";
export { isLoopback } from "./host.ts";
export { isRecord, type Json, type JsonObject } from "./json.ts";
export { type Era, META } from "./meta.ts";
export type { RedactRules } from "./redactor.ts";
export type { Infer, Schema, SchemaIssue } from "./schema.ts";
export type { TelemetryOptions } from "./telemetry/content.ts";
export { cleanText } from "./text.ts";
