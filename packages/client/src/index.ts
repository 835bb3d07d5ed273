export { renderText } from "./call/results.ts";
export type { ToolMatch, ToolSelection } from "./catalog/filters.ts";
export { createClient } from "./client.ts";
export { commandLineOf, type Mount, type Sandbox } from "./connection/launch.ts";
export { type FieldInput, parseFieldText } from "./question/field-text.ts";
export { checkAnswer, type FieldIssue, type FieldProblem } from "./question/field-values.ts";
export { parseFields } from "./question/fields.ts";
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
  CallDriver,
  CallOptions,
  Leg,
  ReadOptions,
  ToolCallChanges,
  ToolCallOutcome,
  ToolCallRequest,
  ToolDefinition,
  ToolResult,
  ToolRuntime,
  WireResult,
} from "./types/calls.ts";
export type {
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
  Naming,
  PromptMessage,
  ResourceBlob,
} from "./types/catalog.ts";
export type { Client, ClientOptions } from "./types/client.ts";
export type { ClientEvents, EventSource, LogEvent, ProgressEvent } from "./types/events.ts";
export type { AnyInterceptor, CatalogChange, Interceptor, Next, RuntimeInterceptor } from "./types/interceptors.ts";
export type {
  AnswerProblem,
  ApprovedSampling,
  ElicitationAnswer,
  ElicitationHandler,
  ElicitationRequest,
  Field,
  FieldOption,
  Roots,
  SamplingAnswer,
  SamplingHandler,
  SamplingRequest,
} from "./types/questions.ts";
export type {
  HttpServerConfig,
  ServerConfig,
  ServerInfo,
  StdioServerConfig,
  TransportServerConfig,
} from "./types/servers.ts";
