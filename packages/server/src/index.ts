export type { AnswersOf, LinearContext, NamedQuestion } from "./asking.ts";
export { audio, type Content, content, file, image, link, text } from "./content.ts";
export type { Caller, ClientDescription, ToolContext } from "./context.ts";
export { isSuspension, ToolError } from "./errors.ts";
export type { FetchOptions, HttpOptions } from "./http.ts";
export type { Listening, ListenOptions } from "./listen.ts";
export type { LogEntry, LogLevel } from "./log.ts";
export type { CompletionOptions } from "./pages.ts";
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
