import {
  type CallToolResult,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type Result,
} from "@modelcontextprotocol/server";
import { describeIssues, didYouMean, isRecord, type Schema, validate } from "@tenon/core";
import type { CacheHints } from "./cache.ts";
import { createContext, type Exchange, progressReporter } from "./context.ts";
import { errorReference, ToolError } from "./errors.ts";
import { type LinearContext, runLinear } from "./journal.ts";
import type { ServerLog } from "./log.ts";
import type { Notifier } from "./notify.ts";
import type { ListMethod, Paging } from "./paging.ts";
import type { CompiledTool, Registry } from "./registry.ts";
import { promptResult, resourceResult, toolResult } from "./result.ts";
import type { Seal } from "./seal.ts";

/** What all requests of a server share. */
export interface Service {
  readonly registry: Registry;
  readonly seal: Seal;
  readonly log: ServerLog;
  readonly exposeErrors: boolean;
  readonly paging: Paging;
  readonly cacheHints: CacheHints;
  readonly notify: Notifier;
  /** What the server's `lifespan` opened; opens it on first use. */
  lifespan(): Promise<unknown>;
}

/** The methods a server answers itself; everything else is the protocol layer's business. */
export const METHODS = [
  "tools/list",
  "tools/call",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "prompts/list",
  "prompts/get",
  "completion/complete",
] as const;
export type Method = (typeof METHODS)[number];

const invalid = (message: string, data?: unknown): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, message, data);

function unknownName(kind: string, name: unknown, known: Iterable<string>): ProtocolError {
  const near = typeof name === "string" ? didYouMean(name, [...known]) : undefined;
  return invalid(`Unknown ${kind} ${JSON.stringify(name)}${near ? `; did you mean "${near}"?` : ""}`);
}

/** Arguments that passed the schema, or one readable line about every wrong field. */
async function readArguments(
  input: Schema | undefined,
  given: unknown,
): Promise<{ args: unknown } | { problem: string }> {
  const value = given ?? {};
  if (!isRecord(value))
    return { problem: `arguments: expected an object, got ${Array.isArray(value) ? "an array" : typeof value}` };
  if (input === undefined) return { args: {} };
  const result = await validate(input, value);
  return result.issues ? { problem: describeIssues(result.issues) } : { args: result.value };
}

/** What may be said to a caller about `error`; everything else goes to the log under a reference. */
function describeFailure(service: Service, what: string, error: unknown): string {
  if (error instanceof ToolError) return error.message;
  const reference = errorReference();
  service.log("error", `${what} failed`, { reference, error });
  const detail = service.exposeErrors ? `: ${error instanceof Error ? error.message : String(error)}` : "";
  return `${what} failed (reference ${reference})${detail}`;
}

/** Runs a handler as a linear function with its context, and flushes what it reported last. */
async function runHandler<T>(
  service: Service,
  exchange: Exchange,
  target: { method: Method; name: string; args: unknown },
  handler: (context: never) => T | Promise<T>,
): Promise<{ done: T } | { suspended: InputRequiredResult }> {
  const progress = progressReporter(exchange);
  const lifespan = await service.lifespan();
  const principal = exchange.caller ? [exchange.caller.subject, exchange.caller.clientId ?? null] : null;
  const round = {
    seal: service.seal,
    binding: [principal, target.method, target.name, target.args],
    requestState: exchange.requestState,
    inputResponses: exchange.inputResponses,
  };
  try {
    return await runLinear(round, (linear: LinearContext) =>
      handler(
        createContext(exchange, linear, {
          lifespan,
          log: service.log,
          name: target.name,
          notify: service.notify,
          progress: progress.report,
        }) as never, // each handler declared its own lifespan type
      ),
    );
  } finally {
    await progress.flush();
  }
}

async function callTool(service: Service, params: Record<string, unknown>, exchange: Exchange): Promise<Result> {
  const tool: CompiledTool | undefined = service.registry.tools.get(String(params.name));
  if (!tool) throw unknownName("tool", params.name, service.registry.tools.keys());
  const failed = (text: string, data?: unknown): CallToolResult => ({
    content: [{ type: "text", text }],
    ...(isRecord(data) && { structuredContent: data }),
    isError: true,
  });

  const read = await readArguments(tool.input, params.arguments);
  if ("problem" in read) return failed(`Invalid arguments for ${tool.name}: ${read.problem}`);
  const target = { method: "tools/call", name: tool.name, args: params.arguments ?? {} } as const;
  try {
    const outcome = await runHandler(service, exchange, target, (ctx) => tool.run(read.args as never, ctx)); // checked by its schema
    if ("suspended" in outcome) return outcome.suspended;
    return await toolResult(outcome.done, tool, exchange.era);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const data = error instanceof ToolError ? error.data : undefined;
    return failed(describeFailure(service, `Tool ${tool.name}`, error), data);
  }
}

async function readResource(service: Service, params: Record<string, unknown>, exchange: Exchange): Promise<Result> {
  const uri = String(params.uri);
  const found = service.registry.findResource(uri);
  if (!found) throw new ResourceNotFoundError(uri);
  const target = { method: "resources/read", name: uri, args: {} } as const;
  try {
    const outcome = await runHandler(service, exchange, target, (ctx) =>
      found.resource.run(found.variables as never, ctx),
    ); // strings by the template
    if ("suspended" in outcome) return outcome.suspended;
    if (outcome.done === undefined) throw new ResourceNotFoundError(uri);
    const result = resourceResult(outcome.done, uri, found.resource.mimeType);
    if (exchange.era === "legacy") return result;
    // an answer that took a question belongs to that one call (2026-07-28, caching)
    const asked = exchange.requestState !== undefined || exchange.inputResponses !== undefined;
    return { ...service.cacheHints("resources/read", asked ? { ttlMs: 0 } : found.resource.cache), ...result };
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw new ProtocolError(ProtocolErrorCode.InternalError, describeFailure(service, `Resource ${uri}`, error));
  }
}

async function getPrompt(service: Service, params: Record<string, unknown>, exchange: Exchange): Promise<Result> {
  const prompt = service.registry.prompts.get(String(params.name));
  if (!prompt) throw unknownName("prompt", params.name, service.registry.prompts.keys());
  const read = await readArguments(prompt.input, params.arguments);
  if ("problem" in read) throw invalid(`Invalid arguments for prompt ${prompt.name}: ${read.problem}`);
  const target = { method: "prompts/get", name: prompt.name, args: params.arguments ?? {} } as const;
  try {
    const outcome = await runHandler(service, exchange, target, (ctx) => prompt.run(read.args as never, ctx)); // checked by its schema
    if ("suspended" in outcome) return outcome.suspended;
    return promptResult(outcome.done, prompt.description);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw new ProtocolError(ProtocolErrorCode.InternalError, describeFailure(service, `Prompt ${prompt.name}`, error));
  }
}

/**
 * Answers one request: the single place every transport and both eras come through.
 * @throws ProtocolError with the code the revision asks for
 */
export async function dispatch(
  service: Service,
  method: Method,
  params: Record<string, unknown>,
  exchange: Exchange,
): Promise<Result> {
  const { lists, revision, completers } = service.registry;
  const page = (list: ListMethod, items: readonly object[]): Result =>
    service.paging.list(list, exchange.era, items, revision, params.cursor);
  switch (method) {
    case "tools/list":
      return page(method, lists.tools[exchange.era]);
    case "resources/list":
      return page(method, lists.resources);
    case "resources/templates/list":
      return page(method, lists.templates);
    case "prompts/list":
      return page(method, lists.prompts);
    case "completion/complete": {
      try {
        const { complete } = await import("./completion.ts"); // asked for by few clients
        return await complete(params, exchange, (key) => completers.get(key));
      } catch (error) {
        if (error instanceof ProtocolError) throw error;
        throw new ProtocolError(ProtocolErrorCode.InternalError, describeFailure(service, "Completion", error));
      }
    }
    case "tools/call":
      return callTool(service, params, exchange);
    case "resources/read":
      return readResource(service, params, exchange);
    case "prompts/get":
      return getPrompt(service, params, exchange);
  }
}
