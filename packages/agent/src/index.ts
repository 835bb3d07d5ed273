export { type ApprovalRecord, approvalOf, approvalsOf } from "./approval-records.ts";
export { type ApprovalOptions, approvals } from "./approvals.ts";
export { type BareLoopOptions, type BareLoopResult, bareLoop, type LoopEvent } from "./bare-loop.ts";
export type { AssistantMessage, ChatMessage, ModelEndpoint } from "./chat-completions.ts";
export type {
  ActionRequest,
  ApprovalDecision,
  ApprovalInterrupt,
  ApprovalResume,
  Decider,
  ReviewConfig,
} from "./decisions.ts";
export type { CallOrigin, RunEvent, ThreadEvent } from "./events.ts";
export type { ToolErrors } from "./failures.ts";
export {
  type InteractiveInput,
  type InteractiveOptions,
  type InteractiveResult,
  runInteractive,
} from "./interactive.ts";
export { type InvokableAgent, invokeAgent, streamAgent } from "./invoke.ts";
export {
  isProcessGone,
  processHolder,
  ThreadBusyError,
  ThreadLeaseLost,
  type ThreadLeaseOptions,
  withThreadLease,
} from "./lease.ts";
export { McpTool, type McpToolMetadata } from "./mcp-tool.ts";
export { type McpArtifact, toolMessageOf } from "./messages.ts";
export { type McpMiddlewareOptions, mcpMiddleware } from "./middleware.ts";
export { type ModelOptions, resolveModel } from "./models.ts";
export {
  type ListedResource,
  type ListedResourceTemplate,
  MultiServerMCPClient,
  type ResourceContent,
} from "./multi-server/client.ts";
export type { ServerSession } from "./multi-server/session.ts";
export type {
  CallbackContext,
  Callbacks,
  Connection,
  HookRequest,
  HookResult,
  HookRuntime,
  HttpConnection,
  MultiServerConfig,
  OutputHandling,
  ProgressSource,
  RequestHeaders,
  ServerSource,
  StdioConnection,
  ToolHooks,
  TransportConnection,
} from "./multi-server/types.ts";
export {
  OfflineModel,
  type OfflineReply,
  type OfflineResult,
  type OfflineRules,
  type OfflineTool,
  type OfflineTurn,
} from "./offline.ts";
export {
  type Answer,
  openQuestions,
  type Question,
  type QuestionAction,
  type RunnableAgent,
  resumeValue,
  type ThreadState,
} from "./open-questions.ts";
export {
  type DispatchOptions,
  dispatch,
  type OpenAITool,
  type OpenAIToolCall,
  type OpenAIToolMessage,
  toOpenAITools,
} from "./openai-tools.ts";
export type { ApprovableTool, ApprovalPolicy, ApprovalRule, DecisionKind } from "./policy.ts";
export { fromModelArguments, type ModelProvider, toModelSchema } from "./provider-schemas/index.ts";
export type { ElicitationInterrupt, ElicitationResume } from "./questions.ts";
export {
  estimateTokens,
  findTools,
  type SearchableTool,
  type SearchToolsOptions,
  searchTools,
  withinBudget,
} from "./search-tools.ts";
export {
  type ContextField,
  type ContextMetaOptions,
  type ContextScope,
  contextMeta,
  contextOf,
  type StateContext,
  type StateContextOptions,
  stateContext,
} from "./state-context.ts";
export { stateByTrace, type TracedState } from "./state-context-trace.ts";
export {
  type EndState,
  type RunStream,
  type StreamAnswer,
  type StreamEvent,
  type StreamInput,
  type StreamOptions,
  type StreamStamp,
  streamRun,
} from "./stream.ts";
export type { StreamError } from "./stream-error.ts";
export { type StreamInteractiveOptions, streamInteractive } from "./stream-interactive.ts";
export type { RedactPlace, StreamRedactor } from "./stream-shape.ts";
export type { ThreadOptions } from "./stream-thread.ts";
export {
  type AgentClient,
  type AgentInterceptor,
  type McpStreamChunk,
  type McpToolsOptions,
  mcpTools,
} from "./tools.ts";
