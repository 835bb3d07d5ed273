import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type Result,
} from "@modelcontextprotocol/server";
import { describeIssues, didYouMean, isRecord, type Schema, validate } from "@tenon/core";
import { createAsking } from "./asking.ts";
import { createContext, type Exchange, progressReporter } from "./context.ts";
import { errorReference, ToolError } from "./errors.ts";
import { createPages } from "./pages.ts";
import type { CompiledTool, Registry } from "./registry.ts";
import { promptResult, resourceResult, toolResult } from "./result.ts";
import { answerOnce, type Keeping, type Target, type Wire } from "./rounds.ts";

/** What all requests of a server share. */
export interface Service extends Keeping {
  readonly registry: Registry;
  readonly exposeErrors: boolean;
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
  target: Target & { method: Method },
  handler: (context: never) => T | Promise<T>,
  wire: Wire<T>,
): Promise<Result> {
  const progress = progressReporter(exchange);
  try {
    const lifespan = await service.lifespan();
    return await answerOnce(
      service,
      exchange,
      target,
      (linear, { urls }) => {
        const pages = createPages({
          store: service.store,
          ids: urls,
          subject: exchange.caller?.subject,
          ttlMs: service.questionTtlMs,
          waitMs: service.pageWaitMs,
          signal: exchange.signal,
          onCompleted: async (elicitationId) => {
            // 2026-07-28 has no such message: there the client's own retry finds out
            if (exchange.era === "modern") return;
            await exchange.notify("notifications/elicitation/complete", { elicitationId }).catch(() => undefined);
          },
        });
        const { capabilities } = exchange.client;
        const context = createContext(exchange, createAsking(linear, { era: exchange.era, capabilities, pages }), {
          lifespan,
          log: service.log,
          name: target.name,
          progress: progress.report,
          isOpen: linear.isOpen,
        });
        return handler(context as never); // each handler declared its own lifespan type
      },
      wire,
    );
  } catch (error) {
    if (error instanceof ProtocolError || exchange.signal.aborted) throw error;
    // not the handler's failure but ours: the lifespan did not open, the store cannot be reached
    throw new ProtocolError(ProtocolErrorCode.InternalError, describeFailure(service, target.name, error));
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
  const { name, idempotent } = tool;
  const target = { method: "tools/call", name, args: params.arguments ?? {}, idempotent } as const;
  // the arguments were checked by the tool's schema
  return runHandler(service, exchange, target, (ctx) => tool.run(read.args as never, ctx), {
    done: (value) => toolResult(value, tool, exchange.era),
    failed(error) {
      if (error instanceof ProtocolError) throw error;
      const data = error instanceof ToolError ? error.data : undefined;
      return failed(describeFailure(service, `Tool ${name}`, error), data);
    },
  });
}

/** How a resource or prompt fails: as a JSON-RPC error, since their results have no place for one. */
const failing =
  (service: Service, what: string) =>
  (error: unknown): never => {
    if (error instanceof ProtocolError) throw error;
    throw new ProtocolError(ProtocolErrorCode.InternalError, describeFailure(service, what, error));
  };

async function readResource(service: Service, params: Record<string, unknown>, exchange: Exchange): Promise<Result> {
  const uri = String(params.uri);
  const found = service.registry.findResource(uri);
  if (!found) throw new ResourceNotFoundError(uri);
  const target = { method: "resources/read", name: uri, args: {} } as const;
  // strings by the template
  return runHandler(service, exchange, target, (ctx) => found.resource.run(found.variables as never, ctx), {
    done(value) {
      if (value === undefined) throw new ResourceNotFoundError(uri);
      return resourceResult(value, uri, found.resource.mimeType);
    },
    failed: failing(service, `Resource ${uri}`),
  });
}

async function getPrompt(service: Service, params: Record<string, unknown>, exchange: Exchange): Promise<Result> {
  const prompt = service.registry.prompts.get(String(params.name));
  if (!prompt) throw unknownName("prompt", params.name, service.registry.prompts.keys());
  const read = await readArguments(prompt.input, params.arguments);
  if ("problem" in read) throw invalid(`Invalid arguments for prompt ${prompt.name}: ${read.problem}`);
  const target = { method: "prompts/get", name: prompt.name, args: params.arguments ?? {} } as const;
  // the arguments were checked by the prompt's schema
  return runHandler(service, exchange, target, (ctx) => prompt.run(read.args as never, ctx), {
    done: (value) => promptResult(value, prompt.description),
    failed: failing(service, `Prompt ${prompt.name}`),
  });
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
  const { lists } = service.registry;
  switch (method) {
    case "tools/list":
      return { tools: lists.tools[exchange.era] };
    case "resources/list":
      return { resources: lists.resources };
    case "resources/templates/list":
      return { resourceTemplates: lists.templates };
    case "prompts/list":
      return { prompts: lists.prompts };
    case "tools/call":
      return callTool(service, params, exchange);
    case "resources/read":
      return readResource(service, params, exchange);
    case "prompts/get":
      return getPrompt(service, params, exchange);
  }
}
