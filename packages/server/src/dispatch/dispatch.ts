import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, type Result } from "@modelcontextprotocol/server";
import { isRecord } from "@tenon/core";
import { type ContentOf, didYouMean, toJson } from "@tenon/core/internal";
import type { Contract } from "../contract/contract.ts";
import { demandScopes, listedNames } from "../definition/access.ts";
import { type CompiledInput, type ReadingRules, readArguments } from "../definition/arguments.ts";
import type { CacheHints } from "../definition/cache.ts";
import { within } from "../definition/mount.ts";
import {
  type CompiledPrompt,
  type CompiledTool,
  type Home,
  type Kept,
  type Lists,
  unprefixedUri,
} from "../definition/registry.ts";
import { failedCall, promptResult, resourceResult, toolResult } from "../definition/result.ts";
import { errorData, ToolError } from "../errors.ts";
import type { Extensions } from "../extension/extensions.ts";
import type { Exchange } from "../handler/context.ts";
import { describeFailure, runHandler } from "../handler/handler.ts";
import type { Journal } from "../handler/journal.ts";
import { requestLog } from "../log.ts";
import { createMiddlewareClock } from "../middleware/clock.ts";
import { runOnion } from "../middleware/onion.ts";
import { requestOf } from "../middleware/request.ts";
import type { Keeping } from "../question/rounds.ts";
import type { Tasks } from "../task/tasks.ts";
import { declaresTasks, missingTasks } from "../task/wire.ts";
import { noteLeftOut } from "./left-out.ts";
import type { Notifier } from "./notify.ts";
import type { ListMethod, Paging } from "./paging.ts";

/** What all requests of a server share. */
export interface Service extends Home, Keeping {
  readonly extensions: Extensions;
  readonly exposeErrors: boolean;
  /** Bytes of one result. */
  readonly maxResultBytes: number;
  /** What mounting put in front of the names in `registry`, such as `"shop_"`; empty for the server that is asked. */
  readonly namePrefix: string;
  /** Whether requests over HTTP come with a verified token: then nothing is for everybody, and no handler sees credentials. */
  readonly authenticated: boolean;
  readonly paging: Paging;
  readonly cacheHints: CacheHints;
  readonly notify: Notifier;
  readonly tasks: Tasks;
  /** Undefined where the server has none; opened before the first request. */
  readonly contract: Contract | undefined;
  /** How arguments and results become attributes of spans, where they may. */
  readonly content: ContentOf | undefined;
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

/** A tool or prompt that was called: what it is, its name for callers, and its arguments as its schema read them. */
interface Called<T> {
  readonly item: T;
  readonly name: string;
  readonly read: Awaited<ReturnType<typeof readArguments>>;
}

/** How the arguments of a definition are read: by its server's rules, within its own limits. */
export function readingFor({ reading }: Pick<Service, "reading">, { input }: { input: CompiledInput }): ReadingRules {
  return input.limits ? { ...reading, limits: { ...reading.limits, ...input.limits } } : reading;
}

/**
 * Finds what a call names and reads its arguments, as far as this caller may know and use it; what a mounted server offers is
 * answered there.
 */
async function find<T extends CompiledTool | CompiledPrompt>(
  service: Service,
  method: "tools/call" | "prompts/get",
  known: ReadonlyMap<string, Kept<T>>,
  params: Record<string, unknown>,
  exchange: Exchange,
): Promise<Called<T> | { answered: Result }> {
  const item = known.get(String(params.name));
  const kind = method === "tools/call" ? "Tool" : "Prompt";
  if (!item || !(item.access.open || item.access.exists(exchange))) {
    throw unknownName(kind.toLowerCase(), params.name, listedNames(known, exchange));
  }
  const name = `${service.namePrefix}${item.name}`;
  demandScopes(`${kind} ${name}`, item.access, exchange);
  const { mounted } = item;
  if (mounted) {
    return { answered: await dispatch(within(service, mounted), method, { ...params, name: mounted.name }, exchange) };
  }
  const read = await readArguments(item.input, params.arguments, readingFor(service, item));
  if (!("problem" in read))
    noteLeftOut(requestLog(service.log, exchange), `${kind} ${name}`, item.input, params.arguments);
  return { item, name, read };
}

async function callTool(service: Service, params: Record<string, unknown>, exchange: Exchange): Promise<Result> {
  const found = await find(service, "tools/call", service.registry.tools, params, exchange);
  if ("answered" in found) return found.answered;
  const { item: tool, name, read } = found;
  const what = `Tool ${name}`;
  // the extension belongs to 2026-07-28: whoever declares it elsewhere could not ask for the task
  const task = tool.task && exchange.era === "modern" && declaresTasks(exchange.client) ? tool.task : undefined;
  if (!task && tool.task?.use === "required") throw missingTasks(what);
  if ("problem" in read) return failedCall(`Invalid arguments for ${name}: ${read.problem}`);
  const begin =
    task &&
    ((journal?: Journal) => service.tasks.create({ tool: name, task, args: params.arguments, exchange, journal }));
  // a state is of a call that was none
  if (begin && task.start === "call" && exchange.requestState === undefined) return begin();
  const idempotent = tool.idempotent || task !== undefined;
  const about = {
    what,
    timeoutMs: tool.timeoutMs,
    idempotent,
    startTask: task?.start === "handler" ? begin : undefined,
  };
  const target = { method: "tools/call", name, args: params.arguments ?? {}, ...about } as const;
  // the arguments were checked by the tool's schema
  return runHandler(dispatch, service, exchange, target, (ctx) => tool.run(read.args as never, ctx), {
    done: (value) => toolResult(value, tool, exchange.era, service.maxResultBytes),
    failed(error) {
      if (error instanceof ProtocolError) throw error;
      const data =
        error instanceof ToolError ? errorData(requestLog(service.log, exchange), what, error.data) : undefined;
      return failedCall(describeFailure(service, exchange, what, error), data);
    },
  });
}

/** How a resource or prompt fails: as a JSON-RPC error, since their results have no place for one. */
const failing =
  (service: Service, exchange: Exchange, what: string) =>
  (error: unknown): never => {
    if (error instanceof ProtocolError) throw error;
    throw new ProtocolError(ProtocolErrorCode.InternalError, describeFailure(service, exchange, what, error));
  };

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
  const about = { what: `Resource ${uri}`, timeoutMs: found.resource.timeoutMs };
  const target = { method: "resources/read", name: `${service.namePrefix}${uri}`, args: {}, ...about } as const;
  // strings by the template
  return runHandler(dispatch, service, exchange, target, (ctx) => found.resource.run(found.variables as never, ctx), {
    done(value) {
      if (value === undefined) throw new ResourceNotFoundError(uri);
      const result = resourceResult(value, uri, found.resource.mimeType, service.maxResultBytes);
      if (exchange.era === "legacy") return result;
      // an answer that took a question belongs to that one call (2026-07-28, caching)
      const asked = exchange.requestState !== undefined || exchange.inputResponses !== undefined;
      const hint = asked ? { ttlMs: 0 } : found.resource.cache;
      // what not everybody may read is for nobody else, whatever the server says of its resources in general
      const own = found.resource.access.open ? hint : { ...hint, scope: "private" as const };
      return { ...service.cacheHints("resources/read", own), ...result };
    },
    failed: failing(service, exchange, about.what),
  });
}

async function getPrompt(service: Service, params: Record<string, unknown>, exchange: Exchange): Promise<Result> {
  const found = await find(service, "prompts/get", service.registry.prompts, params, exchange);
  if ("answered" in found) return found.answered;
  const { item: prompt, name, read } = found;
  if ("problem" in read) throw invalid(`Invalid arguments for prompt ${name}: ${read.problem}`);
  const about = { what: `Prompt ${name}`, timeoutMs: prompt.timeoutMs };
  const target = { method: "prompts/get", name, args: params.arguments ?? {}, ...about } as const;
  // the arguments were checked by the prompt's schema
  return runHandler(dispatch, service, exchange, target, (ctx) => prompt.run(read.args as never, ctx), {
    done: (value) => promptResult(value, prompt.description, name, service.maxResultBytes),
    failed: failing(service, exchange, about.what),
  });
}

/** Answers one request from the definitions, without the server's middleware. */
async function answer(
  service: Service,
  method: Method,
  params: Record<string, unknown>,
  exchange: Exchange,
): Promise<Result> {
  const page = (list: ListMethod, pick: (lists: Lists) => readonly object[]): Result => {
    const { registry, authenticated, paging } = service;
    const lists = registry.listsFor(exchange);
    const personal = authenticated || lists !== registry.lists;
    return paging.list(list, exchange.era, pick(lists), { revision: registry.revision, personal }, params.cursor);
  };
  switch (method) {
    case "tools/list":
      return page(method, (lists) => lists.tools[exchange.era]);
    case "resources/list":
      return page(method, (lists) => lists.resources);
    case "resources/templates/list":
      return page(method, (lists) => lists.templates);
    case "prompts/list":
      return page(method, (lists) => lists.prompts);
    case "completion/complete": {
      try {
        const { complete } = await import("../definition/completion.ts"); // asked for by few clients
        return await complete(params, exchange, (key) => service.registry.completersOf(key, exchange));
      } catch (error) {
        if (error instanceof ProtocolError) throw error;
        throw new ProtocolError(
          ProtocolErrorCode.InternalError,
          describeFailure(service, exchange, "Completion", error),
        );
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

/**
 * Runs `core` inside the server's middleware, the first one outermost. What anything on the way throws leaves as the caller may
 * see it.
 * @throws ProtocolError with the code the revision asks for
 */
export async function throughMiddleware(
  service: Service,
  method: string,
  params: Record<string, unknown>,
  exchange: Exchange,
  core: (params: Record<string, unknown>) => Promise<Result>,
): Promise<Result> {
  const what = `Request ${method}`;
  const log = requestLog(service.log, exchange);
  try {
    if (service.middleware.length === 0) return await core(params);
    const ours = new WeakSet<Result>();
    const clock = createMiddlewareClock(service.timeoutMs, what, log);
    const answered = runOnion(service.middleware, requestOf(service, method, params, exchange), async (request) => {
      const resume = clock.pause();
      try {
        const inner = await core({ ...request.params });
        ours.add(inner);
        return inner;
      } finally {
        resume();
      }
    });
    const result = await Promise.race([answered, clock.late]).finally(clock.stop);
    // what middleware made is an author's value like a handler's: a result the wire cannot carry would never be answered
    return ours.has(result) ? result : (toJson(result, "the result of middleware") as Result); // a record stays one
  } catch (error) {
    if (error instanceof ProtocolError) {
      const { code, message, data } = error;
      if (data === undefined) throw error;
      const sendable = errorData(log, what, data);
      throw sendable === undefined ? new ProtocolError(code, message) : error;
    }
    // thrown by middleware, or by a rule about who may see what
    const text = describeFailure(service, exchange, what, error);
    const data = error instanceof ToolError ? errorData(log, what, error.data) : undefined;
    if (method === "tools/call") return failedCall(text, data);
    const code = error instanceof ToolError ? ProtocolErrorCode.InvalidRequest : ProtocolErrorCode.InternalError;
    throw new ProtocolError(code, text, data);
  }
}

/**
 * Answers one request: the single place every transport and both eras come through.
 * @throws ProtocolError with the code the revision asks for
 */
export function dispatch(
  service: Service,
  method: Method,
  params: Record<string, unknown>,
  exchange: Exchange,
): Promise<Result> {
  return throughMiddleware(service, method, params, exchange, (given) => answer(service, method, given, exchange));
}
