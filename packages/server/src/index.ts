// first, so that the largest part of what a server loads is on its way while the small files below are read
import "@modelcontextprotocol/server";

export type { AcceptedContext } from "./contract/contract.ts";
export type { ContextOf, ContractOptions } from "./contract/options.ts";
export type { CacheHint } from "./definition/cache.ts";
export type { Completer, CompletionContext } from "./definition/completion.ts";
export { audio, type Content, content, file, image, link, text } from "./definition/content.ts";
export {
  type Definition,
  definePrompt,
  defineResource,
  defineTool,
  type PromptHandler,
  type PromptOptions,
  type ResourceHandler,
  type ResourceOptions,
  type ToolHandler,
  type ToolOptions,
  type WorkerToolOptions,
} from "./definition/definitions.ts";
export { type JsonSchema, jsonSchema } from "./definition/json-schema.ts";
export type { Notifier } from "./dispatch/notify.ts";
export { isSuspension, ToolError } from "./errors.ts";
export {
  type ConnectedClient,
  type Extension,
  type ExtensionExchange,
  type ExtensionMethod,
  extensionMethod,
} from "./extension/extensions.ts";
export type { AnyContext, Caller, ClientDescription, ContextLog, Exchange, ToolContext } from "./handler/context.ts";
export type { PromptMessage, ResourceContents } from "./handler/inner.ts";
export type { WorkerPoolOptions } from "./handler/workers.ts";
export type { AdminListening, AdminOptions } from "./http/admin.ts";
export type { RunOptions } from "./http/flags.ts";
export type { FetchOptions, HttpOptions } from "./http/http.ts";
export type { Listening, ListenOptions } from "./http/listen.ts";
export type { TlsOptions } from "./http/tls.ts";
export type { LogEntry, LogLevel } from "./log.ts";
export type { Middleware, Next } from "./middleware/onion.ts";
export type { RequestTarget, ServerRequest } from "./middleware/request.ts";
export type { ServerOptions } from "./options.ts";
export type { PageResult } from "./question/pages.ts";
export { type Answer, type AnswerOf, multi, type Shape } from "./question/question.ts";
export { openStateKeys } from "./question/seal.ts";
export { createServer } from "./server.ts";
export type { TasksOptions, TaskUse, ToolTaskOptions } from "./task/options.ts";
export type { Working } from "./task/tasks.ts";
export type { TenonServer } from "./tenon-server.ts";
export type { WorkerContext, WorkerFunction } from "./worker-entry.ts";
