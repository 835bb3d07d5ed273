import { type CatalogTool, type Client, renderText, type ToolResult, type ToolRuntime } from "@tenon/client";
import { ConfigError, isRecord, type JsonObject, TenonError } from "@tenon/core";
import { checkOptions, didYouMean } from "@tenon/core/internal";
import { type ModelProvider, modelSchemaOf, restoreArguments } from "../model/provider-schemas/index.ts";
import { EMPTY_FAILURE, EMPTY_RESULT, failureText } from "../tool/messages.ts";

/** One entry of the `tools` of an OpenAI-compatible request. */
export interface OpenAITool {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description: string; readonly parameters: JsonObject };
}

/** A call as an OpenAI-compatible endpoint writes it: the arguments are JSON text. */
export interface OpenAIToolCall {
  readonly id: string;
  readonly type?: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

/** The message that answers a call. */
export interface OpenAIToolMessage {
  readonly role: "tool";
  readonly tool_call_id: string;
  readonly content: string;
}

/** Options of `dispatch`. */
export interface DispatchOptions {
  /** Cancels the call. */
  signal?: AbortSignal;
  /** Milliseconds without an answer or progress until the call fails. Default: the client's, 60,000. */
  timeoutMs?: number;
  /** Characters of a result that the model gets; the rest is cut off and counted. Default 40,000. */
  maxResultChars?: number;
  /** What interceptors see as `request.runtime`, besides the call's id. */
  runtime?: ToolRuntime;
  /** Whose form of the schemas the model was shown. Default `"strictest"`. */
  provider?: ModelProvider;
}

const MAX_DESCRIPTION = 1_024;
export const MAX_RESULT_CHARS = 40_000;

/**
 * Tools of a catalog as the `tools` of an OpenAI-compatible request, under their model-side names. Schemas are in a form that
 * the endpoint accepts; descriptions are cut at 1,024 characters, where OpenAI refuses the request.
 *
 * @param options.provider default `"strictest"`
 * @throws ConfigError `code: "unknown_option"`, `"unknown_provider"`
 * @example
 * const tools = await client.listTools();
 * const body = { model, messages, tools: toOpenAITools(tools) };
 */
export function toOpenAITools(
  tools: readonly CatalogTool[],
  options: { provider?: ModelProvider } = {},
): readonly OpenAITool[] {
  checkOptions(options, ["provider"], "toOpenAITools(tools, options)");
  return tools.map(({ name, description, inputSchema }) => ({
    type: "function",
    function: {
      name,
      description: description.length > MAX_DESCRIPTION ? `${description.slice(0, MAX_DESCRIPTION - 1)}…` : description,
      parameters: modelSchemaOf(inputSchema, options.provider).schema,
    },
  }));
}

/** Text for a model, never longer than `limit` and never empty. */
export function boundedText(text: string, limit: number, empty: string): string {
  if (text.trim() === "") return empty; // providers refuse an empty tool message
  if (text.length <= limit) return text;
  return `${text.slice(0, limit)}\n[cut: the first ${limit} of ${text.length} characters]`;
}

/** A call that was understood, or what the model is told instead. */
export type ReadCall =
  | { readonly entry: CatalogTool; readonly args: Record<string, unknown> }
  | { readonly problem: string };

/** Which tool a call means and with which arguments; the client checks them against the tool's own schema. Never throws. */
export function readCall(tools: readonly CatalogTool[], call: OpenAIToolCall, provider?: ModelProvider): ReadCall {
  const { name, arguments: text } = call.function;
  const entry = tools.find((tool) => tool.name === name);
  if (!entry) {
    const known = tools.map((tool) => tool.name);
    const near = didYouMean(name.slice(0, 100), known);
    const hint = near ? `Did you mean ${near}?` : `There are: ${known.slice(0, 50).join(", ") || "none"}.`;
    return { problem: `There is no tool ${JSON.stringify(name.slice(0, 100))}. ${hint}` };
  }
  let given: unknown;
  try {
    given = text.trim() === "" ? {} : JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message.slice(0, 200) : "";
    return { problem: `The arguments of ${name} are not JSON (${why}). Write them as one JSON object and call again.` };
  }
  if (!isRecord(given))
    return { problem: `The arguments of ${name} must be one JSON object. Correct them and call again.` };
  return {
    entry,
    args: restoreArguments(entry.inputSchema, given, modelSchemaOf(entry.inputSchema, provider).wireNames),
  };
}

/** What a call came to, for the model and for a screen. */
export interface Dispatched {
  readonly text: string;
  readonly status: "success" | "error";
}

/** Sends a call that was read. @throws what is not a TenonError, and when the signal aborts */
export async function send(
  client: Client,
  { entry, args }: { readonly entry: CatalogTool; readonly args: Record<string, unknown> },
  id: string,
  options: DispatchOptions,
): Promise<Dispatched> {
  const limit = options.maxResultChars ?? MAX_RESULT_CHARS;
  let result: ToolResult;
  try {
    result = await client.dispatch(entry.name, args, {
      ...(options.signal && { signal: options.signal }),
      ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
      runtime: { ...options.runtime, toolCallId: id },
    });
  } catch (error) {
    if (options.signal?.aborted || !(error instanceof TenonError)) throw error;
    return { text: boundedText(failureText(error), limit, EMPTY_FAILURE), status: "error" };
  }
  const text = renderText(result.content, result.structured); // images and sound as words, never raw
  return result.isError
    ? { text: boundedText(text, limit, EMPTY_FAILURE), status: "error" }
    : { text: boundedText(text, limit, EMPTY_RESULT), status: "success" };
}

/**
 * Carries out one call of a model and gives the message that answers it. An unknown name, arguments that are not JSON or do not
 * fit, an error of the tool and a server that is gone are answers too, so that the conversation stays valid.
 *
 * @param tools the tools the model was given
 * @throws ConfigError `code: "unknown_option"`; TenonError `code: "cancelled"` when the signal aborts; what an interceptor
 *   throws that is not a Tenon error
 * @example
 * for (const call of reply.tool_calls ?? []) messages.push(await dispatch(client, tools, call));
 */
export async function dispatch(
  client: Client,
  tools: readonly CatalogTool[],
  call: OpenAIToolCall,
  options: DispatchOptions = {},
): Promise<OpenAIToolMessage> {
  checkOptions(
    options,
    ["signal", "timeoutMs", "maxResultChars", "runtime", "provider"],
    "dispatch(client, tools, call, options)",
  );
  checkLimit("maxResultChars", options.maxResultChars);
  const read = readCall(tools, call, options.provider);
  const { text } = "problem" in read ? { text: read.problem } : await send(client, read, call.id, options);
  return { role: "tool", tool_call_id: call.id, content: text };
}

/** @throws ConfigError `code: "invalid_option"` for a limit that is not a positive whole number */
export function checkLimit(name: string, value: number | undefined): void {
  if (value === undefined || (Number.isSafeInteger(value) && value > 0)) return;
  throw new ConfigError(`The option ${name} must be a whole number above 0, got ${String(value)}`, {
    code: "invalid_option",
  });
}
