import { type MessageContent, ToolMessage } from "@langchain/core/messages";
import { renderText, type ToolCallRequest, type ToolResult } from "@tenon/client";
import { ConfigError, type SerializedError, serializeError, TenonError } from "@tenon/core";
import { resultFailure } from "./failures.ts";

/** What a program can read from a tool's message besides the text the model sees. */
export interface McpArtifact {
  /** The tool's structured content, where it has any. */
  readonly structured?: unknown;
  /** `_meta` of the result. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** Set when the call failed before the tool could answer. */
  readonly error?: SerializedError;
}

/** Which tool a message is from. */
export interface MessageOrigin {
  /** The tool's name as the model knows it. */
  readonly name?: string;
  readonly metadata?: Record<string, unknown>;
}

/** What a message shows of a result: what the model sees, and what only programs see. */
export interface ShownResult {
  readonly content: MessageContent;
  readonly artifact: unknown;
}

const failures = new WeakMap<ToolMessage, () => unknown>();

/** The error a tool's message stands for, when it tells of a failed call; undefined for other messages. */
export function failureOf(message: ToolMessage): unknown {
  return failures.get(message)?.();
}

/** Forgets what a message stands for: it is to be shown to the model whatever a middleware thinks of failures. */
export function settled(message: ToolMessage): ToolMessage {
  failures.delete(message);
  return message;
}

/** The artifact of a tool's answer. */
function artifactOf(result: ToolResult): McpArtifact {
  return { ...(result.structured !== undefined && { structured: result.structured }), meta: result.meta };
}

/** What a message shows of a result unless somebody wants something else: all as text. */
export function shownAsText(result: ToolResult): ShownResult {
  return { content: renderText(result.content, result.structured), artifact: artifactOf(result) };
}

/** What a model reads where there is nothing to read: providers refuse an empty tool message. */
export const EMPTY_RESULT = "(no output)";
export const EMPTY_FAILURE = "The tool failed without saying why.";

/** A tool's answer as the message its call waits for. */
export function resultMessage(
  origin: MessageOrigin,
  id: string,
  result: ToolResult,
  { content, artifact }: ShownResult = shownAsText(result),
): ToolMessage {
  const message = new ToolMessage({
    ...origin,
    content: content.length > 0 ? content : result.isError ? EMPTY_FAILURE : EMPTY_RESULT,
    status: result.isError ? "error" : "success",
    artifact,
    tool_call_id: id,
  });
  if (result.isError) failures.set(message, () => resultFailure({ name: origin.name ?? "" }, result));
  return message;
}

/** A failed call in words for a model, with a warning where the call may have had its effect. */
export function failureText(error: unknown, name = "The tool"): string {
  const told = serializeError(error);
  const text = error instanceof TenonError ? told.message : `${name} failed: ${told.message || told.name}`;
  // the client's own errors say it already
  const warn = told.maybeExecuted === true && !text.includes("may have taken effect");
  const effect = warn ? " The call may have taken effect on the server: do not repeat it blindly, check first." : "";
  return `${text}${effect}`;
}

/** A failed call as the message its call waits for. */
export function failureMessage(origin: MessageOrigin, id: string, error: unknown): ToolMessage {
  const artifact: McpArtifact = { meta: {}, error: serializeError(error) };
  const message = new ToolMessage({
    ...origin,
    content: failureText(error, origin.name),
    status: "error",
    artifact,
    tool_call_id: id,
  });
  failures.set(message, () => error);
  return message;
}

/**
 * The message for the model that an outcome would have become, for interceptors that answer with a Command and want to keep
 * status, text and artifact.
 *
 * @throws ConfigError `code: "no_tool_call"` when the call was not made by an agent
 * @example
 * const audit: AgentInterceptor = async (request, next) => {
 *   const outcome = await next(request);
 *   if (!("isError" in outcome)) return outcome; // another interceptor's message or command
 *   return new Command({ update: { messages: [toolMessageOf(request, outcome)], auditLog: [request.name] } });
 * };
 */
export function toolMessageOf(
  request: Pick<ToolCallRequest, "server" | "name" | "runtime">,
  outcome: ToolResult | TenonError,
): ToolMessage {
  const id = request.runtime.toolCallId;
  if (id === undefined) {
    throw new ConfigError(
      `The call of ${request.server}/${request.name} was not made by an agent, so no message waits for its outcome`,
      { code: "no_tool_call" },
    );
  }
  const origin = { metadata: { mcp: { server: request.server, tool: request.name } } };
  return outcome instanceof TenonError ? failureMessage(origin, id, outcome) : resultMessage(origin, id, outcome);
}
