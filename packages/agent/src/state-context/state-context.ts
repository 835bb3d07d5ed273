import { type Command, getConfig, getCurrentTaskInput, isCommand } from "@langchain/langgraph";
import { ConfigError, ContractError, isRecord, type Json, type JsonObject, META, type Schema } from "@tenon/core";
import { contextError, contextFault, MAX_CONTEXT_BYTES } from "@tenon/core/contract";
import { canonicalJson, checkOptions, isSchema, jsonSchemaOf } from "@tenon/core/internal";
import { type AgentMiddleware, createMiddleware } from "langchain";
import { isPrivateKey } from "../thread/stream-reader.ts";
import { updateOf } from "../tool/commands.ts";
import type { AgentInterceptor } from "../tool/tools.ts";
import { fitValue, wrongValue } from "./state-context-fit.ts";
import { traceIdOf } from "./state-context-trace.ts";

/** What a state's context is made for. */
export interface ContextScope {
  readonly threadId?: string | undefined;
  /** The run's context. */
  readonly context?: unknown;
}

/**
 * Where a field of the context comes from when it is not the state's field of that name. Undefined leaves it out.
 * @param context the run's context
 * @param threadId the conversation; undefined where there is none
 */
export type ContextField = (
  state: Readonly<Record<string, unknown>>,
  context: unknown,
  threadId: string | undefined,
) => unknown;

/** Options of `stateContext`. */
export interface StateContextOptions {
  /** By field of the contract. What the program knows for sure, such as who is asking, belongs here and not into the state. */
  readonly fields?: Readonly<Record<string, ContextField>>;
  /** UTF-8 bytes of the whole context as JSON, since every request carries it. Default 16384, and no server takes more. */
  readonly maxBytes?: number;
}

/** A mapping from the state of a graph to the context of a contract. */
export interface StateContext {
  /** The contract's fields as JSON Schema. */
  readonly schema: JsonObject;
  /**
   * The context for a state, checked.
   * @throws ContractError `code: "missing_context_field"`, `"invalid_context_value"` or `"context_too_large"`
   */
  of(state: unknown, scope?: ContextScope): JsonObject;
  /**
   * The same as the `meta` of a request: for resources and prompts, which `contextMeta` does not see.
   * @throws ContractError as `of`
   * @example await client.readResources("order", [uri], { meta: context.meta(state, { threadId }), runtime: { threadId } });
   */
  meta(state: unknown, scope?: ContextScope): Record<string, unknown>;
  /** Checks the context after every update of an agent's state. Put it first in the list of middleware. */
  readonly middleware: AgentMiddleware;
}

const TRACE = "trace_id";

function declaredIn(schema: JsonObject): string[] {
  const all = [schema, ...(Array.isArray(schema.allOf) ? schema.allOf : [])];
  return all.flatMap((part) => (isRecord(part) && isRecord(part.properties) ? Object.keys(part.properties) : []));
}

function requiredIn(schema: JsonObject): ReadonlySet<string> {
  return new Set(Array.isArray(schema.required) ? schema.required.map(String) : []);
}

function schemaOf(given: Schema | JsonObject): JsonObject {
  // a schema library's schema, or the document that a server announces
  const schema = isSchema(given) ? jsonSchemaOf(given, "input", "stateContext(schema)") : given;
  if (!isRecord(schema) || declaredIn(schema).length === 0) {
    throw new ConfigError("stateContext(schema) needs the schema of an object with the contract's fields", {
      code: "schema",
    });
  }
  return schema;
}

/**
 * Maps the state of a graph to the context of a contract: takes the fields the schema declares, converts what JSON has no
 * kind for where the schema says what it should be, refuses everything else by name and path, and adds `trace_id`, with which
 * `stateByTrace` finds the saved state again.
 *
 * @param schema a Standard Schema with JSON Schema output (Zod 4.2 or later), or a JSON Schema document such as a server's contract
 *   announces (`contract.schema` of `client.servers()`)
 * @throws ConfigError `code: "schema"` or `"unknown_option"`
 * @example
 * const context = stateContext(z.object({ user_id: z.string(), order_id: z.string().optional() }), {
 *   fields: { user_id: (_state, run) => run.userId },
 * });
 * const client = createClient({ servers, interceptors: [contextMeta(context, { servers: ["order"] })] });
 * const agent = createAgent({ model, tools: await mcpTools(client), middleware: [context.middleware, mcpMiddleware()] });
 */
export function stateContext(given: Schema | JsonObject, options: StateContextOptions = {}): StateContext {
  checkOptions(options, ["fields", "maxBytes"], "stateContext(schema, options)");
  const { fields = {}, maxBytes = MAX_CONTEXT_BYTES } = options;
  const schema = schemaOf(given);
  const declared = declaredIn(schema);
  const required = requiredIn(schema);
  checkOptions(fields, declared, "stateContext(schema, { fields })");
  const traced = declared.includes(TRACE) || schema.additionalProperties !== false;

  function schemaFor(field: string): unknown {
    const parts = [schema, ...(Array.isArray(schema.allOf) ? schema.allOf : [])];
    const part = parts.find(
      (item) => isRecord(item) && isRecord(item.properties) && Object.hasOwn(item.properties, field),
    );
    return isRecord(part) && isRecord(part.properties) ? part.properties[field] : undefined;
  }

  function of(state: unknown, scope: ContextScope = {}): JsonObject {
    const values = isRecord(state) ? state : {};
    const found: Array<[string, Json]> = [];
    for (const field of declared) {
      if (field === TRACE) continue;
      const own = Object.hasOwn(values, field) ? values[field] : undefined;
      const value = Object.hasOwn(fields, field) ? fields[field]?.(values, scope.context, scope.threadId) : own;
      // nothing where something is required is missing, not wrong
      if (value === undefined || (value === null && required.has(field))) continue;
      found.push([field, fitValue(schema, schemaFor(field), value, field)]);
    }
    if (traced) found.push([TRACE, traceIdOf(values, scope.threadId)]);
    // also a field called __proto__ is a field
    const context: JsonObject = Object.fromEntries(found);
    const bytes = Buffer.byteLength(canonicalJson(context));
    if (bytes > maxBytes) {
      throw new ContractError(`The context has ${bytes} bytes; at most ${maxBytes} may travel with every request.`, {
        code: "context_too_large",
        maybeExecuted: false,
      });
    }
    const fault = contextFault(schema, context);
    if (fault) throw contextError(fault);
    return context;
  }

  const meta = (state: unknown, scope?: ContextScope): Record<string, unknown> => ({
    [META.context]: of(state, scope),
  });

  /** What a command is about to write: a value that can never be JSON must not reach a checkpoint. */
  function checkUpdate(command: Command): void {
    for (const [key, value] of Object.entries(updateOf(command))) {
      if (!declared.includes(key) || isPrivateKey(key) || Object.hasOwn(fields, key) || value === undefined) continue;
      neverJson(value, key);
    }
  }

  const scopeNow = (): ContextScope => {
    const { configurable, context } = getConfig();
    const threadId: unknown = configurable?.thread_id;
    return { context, threadId: typeof threadId === "string" ? threadId : undefined };
  };

  return {
    schema,
    of,
    meta,
    middleware: createMiddleware({
      name: "TenonStateContext",
      // the model is the first step after the input and after tools; its task's input is the whole state
      wrapModelCall: (request, handler) => {
        of(getCurrentTaskInput(), scopeNow());
        return handler(request);
      },
      wrapToolCall: async (request, handler) => {
        of(getCurrentTaskInput(), scopeNow());
        const outcome = await handler(request);
        if (isCommand(outcome)) checkUpdate(outcome);
        return outcome;
      },
    }),
  };
}

/** Refuses what no schema could make JSON of: numbers that are none, and cycles. */
function neverJson(value: unknown, path: string, open: readonly object[] = []): void {
  if (typeof value === "number" && !Number.isFinite(value)) throw wrongValue(path, String(value), "a finite number");
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return;
  if (open.includes(value)) throw wrongValue(path, "a cycle", "a tree");
  const inside = [...open, value];
  if (Array.isArray(value)) for (const [i, item] of value.entries()) neverJson(item, `${path}[${i}]`, inside);
  else for (const [key, item] of Object.entries(value)) neverJson(item, `${path}.${key}`, inside);
}

/** Options of `contextMeta`. */
export interface ContextMetaOptions {
  /** Configured names of the servers that may know the context. No other server gets it. */
  readonly servers: readonly string[];
}

/**
 * An interceptor that sends the context of the agent's state with every call, in `_meta` under `dev.tenon/context`. Put it
 * first, so that interceptors further in find it in `request.meta` (`contextOf`). Calls that no agent makes pass unchanged; what is read
 * takes it as `context.meta(state)`.
 *
 * @throws ContractError instead of the call, for a state the context cannot be made from; nothing is sent
 */
export function contextMeta(context: StateContext, options: ContextMetaOptions): AgentInterceptor {
  checkOptions(options, ["servers"], "contextMeta(context, options)");
  if (!Array.isArray(options.servers)) {
    throw new ConfigError("contextMeta needs options.servers: the names of the servers that may know the context", {
      code: "invalid_option",
    });
  }
  return async (request, next) => {
    const { state, threadId, context: run } = request.runtime;
    if (state === undefined || !options.servers.includes(request.server)) return next(request);
    return next(request.with({ meta: context.meta(state, { threadId, context: run }) }));
  };
}

/** The context a request carries, for interceptors further in than `contextMeta`; undefined when it carries none. */
export function contextOf(request: { readonly meta: Readonly<Record<string, unknown>> }): JsonObject | undefined {
  const found = request.meta[META.context] as Json | undefined; // `_meta` is JSON
  return isRecord(found) ? found : undefined;
}
