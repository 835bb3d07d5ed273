export { createClient } from "./client.ts";
export { commandLineOf, type Mount, type Sandbox } from "./connection/launch.ts";
export { type FieldInput, parseFieldText } from "./field-text.ts";
export { checkAnswer, type FieldIssue, type FieldProblem } from "./field-values.ts";
export { parseFields } from "./fields.ts";
export type { ToolMatch, ToolSelection } from "./filters.ts";
export { renderText } from "./results.ts";
export { diffTool, formatChanges, type ToolChange, type ToolDefinition, type TrustedTool } from "./trust/definition.ts";
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
  ProgressEvent,
  PromptMessage,
  ReadOptions,
  ResourceBlob,
  ServerConfig,
  ServerInfo,
  StdioServerConfig,
  ToolCallChanges,
  ToolCallOutcome,
  ToolCallRequest,
  ToolResult,
  ToolRuntime,
  TransportServerConfig,
  WireResult,
} from "./types.ts";
