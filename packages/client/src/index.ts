export { createClient } from "./client.ts";
export { commandLineOf, type Mount, type Sandbox } from "./connection/launch.ts";
export { type FieldInput, parseFieldText } from "./field-text.ts";
export { checkAnswer, type FieldIssue, type FieldProblem } from "./field-values.ts";
export { parseFields } from "./fields.ts";
export type { ToolMatch, ToolSelection } from "./filters.ts";
export { renderText } from "./results.ts";
export { schemaIssues } from "./schema-check.ts";
export {
  diffTool,
  formatChanges,
  type ToolChange,
  type ToolDefinition as RecordedDefinition,
  type TrustedTool,
} from "./trust/definition.ts";
export type { FirstStart, FirstUse, OnFirstStart, PinOptions } from "./trust/gate.ts";
export {
  acceptStart,
  acceptTools,
  forgetServer,
  type Lock,
  type PinnedServer,
  type PinnedTool,
  readLock,
} from "./trust/lock.ts";
export { reviewTools, type ToolFinding } from "./trust/review.ts";
export type { Effect, Grants, ServerTrust, UrlHost } from "./trust/types.ts";
export type {
  AnyInterceptor,
  ApprovedSampling,
  CallDriver,
  CallOptions,
  CatalogChange,
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
  Client,
  ClientEvents,
  ClientOptions,
  ElicitationAnswer,
  ElicitationHandler,
  ElicitationRequest,
  EventSource,
  Field,
  FieldOption,
  HttpServerConfig,
  Interceptor,
  Leg,
  LogEvent,
  Naming,
  Next,
  ProgressEvent,
  PromptMessage,
  ReadOptions,
  ResourceBlob,
  Roots,
  RuntimeInterceptor,
  SamplingAnswer,
  SamplingHandler,
  SamplingRequest,
  ServerConfig,
  ServerInfo,
  StdioServerConfig,
  ToolCallChanges,
  ToolCallOutcome,
  ToolCallRequest,
  ToolDefinition,
  ToolResult,
  ToolRuntime,
  TransportServerConfig,
  WireResult,
} from "./types.ts";
