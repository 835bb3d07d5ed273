import {
  type CallToolResult,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type Result,
} from "@modelcontextprotocol/server";
import { didYouMean, isRecord } from "@tenon/core";
import { demandScopes, listedNames } from "./access.ts";
import { readArguments } from "./arguments.ts";
import { createContext, type Exchange, progressReporter } from "./context.ts";
import { errorReference, ToolError } from "./errors.ts";
import type { Extensions } from "./extensions.ts";
import { type LinearContext, runLinear } from "./journal.ts";
import type { ServerLog } from "./log.ts";
import { runOnion } from "./middleware/onion.ts";
import { requestOf } from "./middleware/request.ts";
import { within } from "./mount.ts";
import { type Home, unprefixedUri } from "./registry.ts";
import { promptResult, ResultTooLargeError, resourceResult, toolResult } from "./result.ts";
import type { Seal } from "./seal.ts";

/** What all requests of a server share. */
export interface Service extends Home {
  readonly extensions: Extensions;
  readonly seal: Seal;
  readonly log: ServerLog;
  readonly exposeErrors: boolean;
  /** Bytes of one result. */
  readonly maxResultBytes: number;
  /** What mounting put in front of the names in `registry`, such as `"shop_"`; empty for the server that is asked. */
  readonly namePrefix: string;
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
] as const;
export type Method = (typeof METHODS)[number];

const invalid = (message: string, data?: unknown): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, message, data);

function unknownName(kind: string, name: unknown, known: Iterable<string>): ProtocolError {
  const near = typeof name === "string" ? didYouMean(name, [...known]) : undefined;
  return invalid(`Unknown ${kind} ${JSON.stringify(name)}${near ? `; did you mean "${near}"?` : ""}`);
}

/** What may be said to a caller about `error`; everything else goes to the log under a reference. */
function describeFailure(service: Service, what: string, error: unknown): string {
  if (error instanceof ResultTooLargeError) service.log("error", error.message, { code: error.code });
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
          progress: progress.report,
        }) as never, // each handler declared its own lifespan type
      ),
    );
  } finally {
    await progress.flush();
  }
}

/** A failed call as the model reads it. */
function failedCall(text: string, data?: unknown): CallToolResult {
  return { content: [{ type: "text", text }], ...(isRecord(data) && { structuredContent: data }), isError: true };
}

async function callTool(service: Service, params: Record<string, unknown>, exchange: Exchange): Promise<Result> {
  const { tools } = service.registry;
  const tool = tools.get(String(params.name));
  if (!tool || !(tool.access.open || tool.access.exists(exchange))) {
    throw unknownName("tool", params.name, listedNames(tools, exchange));
  }
  const name = `${service.namePrefix}${tool.name}`;
  demandScopes(`Tool ${name}`, tool.access, exchange);
  if (tool.mounted) {
    return dispatch(within(service, tool.mounted), "tools/call", { ...params, name: tool.mounted.name }, exchange);
  }
  const read = await readArguments(tool.input, params.arguments, service.reading);
  if ("problem" in read) return failedCall(`Invalid arguments for ${name}: ${read.problem}`);
  const target = { method: "tools/call", name, args: params.arguments ?? {} } as const;
  try {
    const outcome = await runHandler(service, exchange, target, (ctx) => tool.run(read.args as never, ctx)); // checked by its schema
    if ("suspended" in outcome) return outcome.suspended;
    return await toolResult(outcome.done, tool, exchange.era, service.maxResultBytes);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const data = error instanceof ToolError ? error.data : undefined;
    return failedCall(describeFailure(service, `Tool ${name}`, error), data);
  }
}

async function readResource(service: Service, params: Record<string, unknown>, exchange: Exchange): Promise<Result> {
  const uri = String(params.uri);
  const found = service.registry.findResource(uri, exchange);
  if (!found) throw new ResourceNotFoundError(uri);
  demandScopes(`Resource ${uri}`, found.resource.access, exchange);
  const { mounted } = found.resource;
  if (mounted) {
    const inside = unprefixedUri(mounted.prefix, uri);
    const result = await dispatch(within(service, mounted), "resources/read", { ...params, uri: inside }, exchange);
    if (!Array.isArray(result.contents)) return result;
    const outside = (part: unknown): unknown => (isRecord(part) && part.uri === inside ? { ...part, uri } : part);
    return { ...result, contents: result.contents.map(outside) };
  }
  const target = { method: "resources/read", name: `${service.namePrefix}${uri}`, args: {} } as const;
  try {
    const outcome = await runHandler(service, exchange, target, (ctx) =>
      found.resource.run(found.variables as never, ctx),
    ); // strings by the template
    if ("suspended" in outcome) return outcome.suspended;
    if (outcome.done === undefined) throw new ResourceNotFoundError(uri);
    return resourceResult(outcome.done, uri, found.resource.mimeType, service.maxResultBytes);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw new ProtocolError(ProtocolErrorCode.InternalError, describeFailure(service, `Resource ${uri}`, error));
  }
}

async function getPrompt(service: Service, params: Record<string, unknown>, exchange: Exchange): Promise<Result> {
  const { prompts } = service.registry;
  const prompt = prompts.get(String(params.name));
  if (!prompt || !(prompt.access.open || prompt.access.exists(exchange))) {
    throw unknownName("prompt", params.name, listedNames(prompts, exchange));
  }
  const name = `${service.namePrefix}${prompt.name}`;
  demandScopes(`Prompt ${name}`, prompt.access, exchange);
  if (prompt.mounted) {
    return dispatch(within(service, prompt.mounted), "prompts/get", { ...params, name: prompt.mounted.name }, exchange);
  }
  const read = await readArguments(prompt.input, params.arguments, service.reading);
  if ("problem" in read) throw invalid(`Invalid arguments for prompt ${name}: ${read.problem}`);
  const target = { method: "prompts/get", name, args: params.arguments ?? {} } as const;
  try {
    const outcome = await runHandler(service, exchange, target, (ctx) => prompt.run(read.args as never, ctx)); // checked by its schema
    if ("suspended" in outcome) return outcome.suspended;
    return promptResult(outcome.done, prompt.description, name, service.maxResultBytes);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw new ProtocolError(ProtocolErrorCode.InternalError, describeFailure(service, `Prompt ${name}`, error));
  }
}

/** Answers one request from the definitions, without the server's middleware. */
async function answer(
  service: Service,
  method: Method,
  params: Record<string, unknown>,
  exchange: Exchange,
): Promise<Result> {
  const lists = () => service.registry.listsFor(exchange);
  switch (method) {
    case "tools/list":
      return { tools: lists().tools[exchange.era] };
    case "resources/list":
      return { resources: lists().resources };
    case "resources/templates/list":
      return { resourceTemplates: lists().templates };
    case "prompts/list":
      return { prompts: lists().prompts };
    case "tools/call":
      return callTool(service, params, exchange);
    case "resources/read":
      return readResource(service, params, exchange);
    case "prompts/get":
      return getPrompt(service, params, exchange);
  }
}

/**
 * Answers one request: the single place every transport and both eras come through. The server's middleware stands around
 * it, the first one outermost.
 * @throws ProtocolError with the code the revision asks for
 */
export async function dispatch(
  service: Service,
  method: Method,
  params: Record<string, unknown>,
  exchange: Exchange,
): Promise<Result> {
  try {
    if (service.middleware.length === 0) return await answer(service, method, params, exchange);
    return await runOnion(service.middleware, requestOf(service, method, params, exchange), (request) =>
      answer(service, method, { ...request.params }, exchange),
    );
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    // thrown by middleware, or by a rule about who may see what
    const text = describeFailure(service, `Request ${method}`, error);
    const data = error instanceof ToolError ? error.data : undefined;
    if (method === "tools/call") return failedCall(text, data);
    const code = error instanceof ToolError ? ProtocolErrorCode.InvalidRequest : ProtocolErrorCode.InternalError;
    throw new ProtocolError(code, text, data);
  }
}
