// first, so that the largest part of what a server loads is on its way while the small files below are read
import "@modelcontextprotocol/server";

export type { CacheHint, CacheOptions } from "./cache.ts";
export type { Completer, Completers, CompletionContext } from "./completion.ts";
export { audio, type Content, content, file, image, link, text } from "./content.ts";
export type { Caller, ClientDescription, ToolContext } from "./context.ts";
export { isSuspension, ToolError } from "./errors.ts";
export type { FetchOptions, HttpOptions } from "./http.ts";
export type { LinearContext } from "./journal.ts";
export type { Listening, ListenOptions } from "./listen.ts";
export type { LogEntry, LogLevel } from "./log.ts";
export type { Notifier } from "./notify.ts";
export { type Answer, type AnswerOf, type MultiChoice, multi, type Shape, type TitledChoices } from "./question.ts";
export type {
  PromptHandler,
  PromptOptions,
  ResourceHandler,
  ResourceOptions,
  ToolHandler,
  ToolOptions,
} from "./registry.ts";
export type { RunOptions } from "./run.ts";
export { loadStateKeys } from "./seal.ts";
export { createServer, type ServerOptions, type TenonServer } from "./server.ts";
