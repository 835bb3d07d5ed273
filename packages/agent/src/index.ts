export { isProcessGone, processHolder } from "@tenon/store";
export { type ApprovalRecord, approvalOf, approvalsOf } from "./approval/approval-records.ts";
export { type ApprovalOptions, approvals } from "./approval/approvals.ts";
export type { ActionRequest, ApprovalDecision, ApprovalInterrupt, ApprovalResume } from "./approval/decisions.ts";
export type { ApprovalPolicy, ApprovalRule } from "./approval/policy.ts";
export { type BareLoopOptions, type BareLoopResult, bareLoop, type LoopEvent } from "./bare-loop/bare-loop.ts";
export type { ChatMessage, ModelEndpoint } from "./bare-loop/chat-completions.ts";
export {
  type DispatchOptions,
  dispatch,
  type OpenAITool,
  type OpenAIToolCall,
  type OpenAIToolMessage,
  toOpenAITools,
} from "./bare-loop/openai-tools.ts";
export {
  estimateTokens,
  findTools,
  type SearchToolsOptions,
  searchTools,
  withinBudget,
} from "./bare-loop/search-tools.ts";
export { type ModelOptions, resolveModel } from "./model/models.ts";
export {
  OfflineModel,
  type OfflineReply,
  type OfflineResult,
  type OfflineRules,
  type OfflineTurn,
} from "./model/offline.ts";
export { fromModelArguments, type ModelProvider, toModelSchema } from "./model/provider-schemas/index.ts";
export {
  type ListedResource,
  type ListedResourceTemplate,
  MultiServerMCPClient,
  type ResourceContent,
} from "./multi-server/client.ts";
export type { ServerSession } from "./multi-server/session.ts";
export type {
  Callbacks,
  Connection,
  HttpConnection,
  MultiServerConfig,
  StdioConnection,
} from "./multi-server/types.ts";
export {
  type Answer,
  openQuestions,
  type Question,
  type QuestionAction,
  type RunnableAgent,
  resumeValue,
} from "./question/open-questions.ts";
export type { ElicitationInterrupt, ElicitationResume } from "./question/questions.ts";
export {
  type ContextMetaOptions,
  contextMeta,
  contextOf,
  type StateContext,
  type StateContextOptions,
  stateContext,
} from "./state-context/state-context.ts";
export { stateByTrace, type TracedState } from "./state-context/state-context-trace.ts";
export type { RunEvent } from "./thread/events.ts";
export { type InteractiveOptions, type InteractiveResult, runInteractive } from "./thread/interactive.ts";
export { invokeAgent, streamAgent } from "./thread/invoke.ts";
export {
  ThreadBusyError,
  ThreadLeaseLostError,
  type ThreadLeaseOptions,
  withThreadLease,
} from "./thread/lease.ts";
export { orderedCheckpoints } from "./thread/ordered-checkpoints.ts";
export {
  type EndState,
  type RunStream,
  type StreamAnswer,
  type StreamEvent,
  type StreamInput,
  type StreamOptions,
  streamRun,
} from "./thread/stream.ts";
export { type StreamInteractiveOptions, streamInteractive } from "./thread/stream-interactive.ts";
export { type ToolCaller, toolCaller } from "./tool/caller.ts";
export { McpTool, type McpToolMetadata } from "./tool/mcp-tool.ts";
export { type McpArtifact, toolMessageOf } from "./tool/messages.ts";
export { type McpMiddlewareOptions, mcpMiddleware } from "./tool/middleware.ts";
export {
  type AgentClient,
  type AgentInterceptor,
  type McpStreamChunk,
  type McpToolsOptions,
  mcpTools,
} from "./tool/tools.ts";
export type { ServersOfAgent } from "./tool/waiting-calls.ts";
