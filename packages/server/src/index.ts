// first, so that the largest part of what a server loads is on its way while the small files below are read
import "@modelcontextprotocol/server";

export type { AccessOptions, Viewer, VisibleTags } from "./access.ts";
export type { ArgumentLimits, UnknownArguments } from "./arguments.ts";
export type { AnswersOf, LinearContext, NamedQuestion } from "./asking.ts";
export type { CacheHint, CacheOptions } from "./cache.ts";
export type { Completer, Completers, CompletionContext } from "./completion.ts";
export { audio, type Content, content, file, image, link, text } from "./content.ts";
export type { Caller, ClientDescription, Exchange, ToolContext } from "./context.ts";
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
} from "./definitions.ts";
export { isSuspension, ToolError } from "./errors.ts";
export {
  type Connection,
  type Extension,
  type ExtensionExchange,
  type ExtensionMethod,
  extensionMethod,
} from "./extensions.ts";
export type { RunOptions } from "./flags.ts";
export type { FetchOptions, HttpOptions } from "./http.ts";
export type { InnerPromptMessage, InnerReading, ResourceContents } from "./inner.ts";
export type { Listening, ListenOptions } from "./listen.ts";
export type { LogEntry, LogLevel } from "./log.ts";
export type { Middleware, Next, RequestTarget, ServerRequest } from "./middleware/onion.ts";
export type { Notifier } from "./notify.ts";
export type { CompletionOptions } from "./pages.ts";
export { type Answer, type AnswerOf, type MultiChoice, multi, type Shape, type TitledChoices } from "./question.ts";
export type { Change } from "./registry.ts";
export { type AnySchema, type JsonSchema, jsonSchema } from "./schema/json-schema.ts";
export { loadStateKeys } from "./seal.ts";
export { createServer, type ServerOptions, type TenonServer } from "./server.ts";
export type { TlsFiles, TlsOptions, TlsPem } from "./tls.ts";
export type { WorkerContext, WorkerFunction } from "./worker-entry.ts";
export type { WorkerPoolOptions } from "./workers.ts";
