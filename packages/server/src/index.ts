// first, so that the largest part of what a server loads is on its way while the small files below are read
import "@modelcontextprotocol/server";

export type { AccessOptions, Viewer, VisibleTags } from "./definition/access.ts";
export type { ArgumentLimits, UnknownArguments } from "./definition/arguments.ts";
export type { CacheHint, CacheOptions } from "./definition/cache.ts";
export type { Completer, Completers, CompletionContext } from "./definition/completion.ts";
export { audio, type Content, content, file, image, link, text } from "./definition/content.ts";
export {
  type Args,
  type Definition,
  type DefinitionKind,
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
export { type AnySchema, type JsonSchema, jsonSchema } from "./definition/json-schema.ts";
export type { Change } from "./definition/registry.ts";
export type { Notifier } from "./dispatch/notify.ts";
export { isSuspension, ToolError } from "./errors.ts";
export {
  type Connection,
  type Extension,
  type ExtensionExchange,
  type ExtensionMethod,
  extensionMethod,
} from "./extension/extensions.ts";
export type { Caller, ClientDescription, Exchange, ToolContext } from "./handler/context.ts";
export type { InnerPromptMessage, InnerReading, ResourceContents } from "./handler/inner.ts";
export type { WorkerPoolOptions } from "./handler/workers.ts";
export type { RunOptions } from "./http/flags.ts";
export type { FetchOptions, HttpOptions } from "./http/http.ts";
export type { Listening, ListenOptions } from "./http/listen.ts";
export type { TlsFiles, TlsOptions, TlsPem } from "./http/tls.ts";
export type { LogEntry, LogLevel } from "./log.ts";
export type { Middleware, Next, RequestTarget, ServerRequest } from "./middleware/onion.ts";
export type { ServerOptions } from "./options.ts";
export type { AnswersOf, LinearContext, NamedQuestion } from "./question/asking.ts";
export type { CompletionOptions } from "./question/pages.ts";
export {
  type Answer,
  type AnswerOf,
  type MultiChoice,
  multi,
  type Shape,
  type TitledChoices,
} from "./question/question.ts";
export { loadStateKeys } from "./question/seal.ts";
export { createServer, type TenonServer } from "./server.ts";
export type { WorkerContext, WorkerFunction } from "./worker-entry.ts";
