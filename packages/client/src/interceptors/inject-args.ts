import { ConfigError, isRecord, type JsonObject } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { ToolCallOutcome, ToolCallRequest, ToolRuntime } from "../types/calls.ts";
import type { Next, RuntimeInterceptor } from "../types/interceptors.ts";
import { forRuntime, noteFactory } from "./general.ts";

/** Makes the value of a field from the call. Undefined leaves the field out. */
export type InjectedValue<Runtime extends ToolRuntime = ToolRuntime> = (
  request: ToolCallRequest<Runtime>,
) => unknown | Promise<unknown>;

/** Which tools get the fields. */
export interface InjectArgsOptions {
  /** Only tools of these servers; default all. The fields are taken from the models' arguments there only. */
  servers?: readonly string[];
  /** Send the fields also to tools whose schema does not declare them. Default false. */
  undeclared?: boolean;
}

/** Keywords whose schemas describe the same object as the schema they stand in. */
const LISTS = ["allOf", "anyOf", "oneOf"];
const SINGLES = ["if", "then", "else"];
const MAX_DEPTH = 20;

function targetOf(root: unknown, ref: unknown): unknown {
  if (typeof ref !== "string" || !ref.startsWith("#/")) return undefined;
  let found: unknown = root;
  for (const part of ref.slice(2).split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    found =
      (isRecord(found) || Array.isArray(found)) && Object.hasOwn(found, key) ? Reflect.get(found, key) : undefined;
  }
  return found;
}

/** The schemas of the same object inside `schema`, itself included, references within the document followed. */
function* inPlace(root: unknown, schema: unknown, depth = 0): Generator<Record<string, unknown>> {
  if (!isRecord(schema) || depth > MAX_DEPTH) return;
  yield schema;
  const inner = [
    ...LISTS.flatMap((key) => (Array.isArray(schema[key]) ? schema[key] : [])),
    ...SINGLES.map((key) => schema[key]),
    ...(isRecord(schema.dependentSchemas) ? Object.values(schema.dependentSchemas) : []),
    targetOf(root, schema.$ref),
  ];
  for (const one of inner) yield* inPlace(root, one, depth + 1);
}

function declares(schema: JsonObject, field: string): boolean {
  for (const one of inPlace(schema, schema)) {
    if (isRecord(one.properties) && Object.hasOwn(one.properties, field)) return true;
  }
  return false;
}

function omit(value: unknown, fields: ReadonlySet<string>): unknown {
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !fields.has(key)));
}

/** `schema` without the fields, wherever they are declared for the object itself. */
function strip(root: JsonObject, schema: unknown, fields: ReadonlySet<string>, depth = 0): unknown {
  if (!isRecord(schema) || depth > MAX_DEPTH) return schema;
  const without = (list: unknown) => (Array.isArray(list) ? list.filter((name) => !fields.has(name)) : list);
  const again = (inner: unknown) => strip(root, inner, fields, depth + 1);
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === "properties") out[key] = omit(value, fields);
    else if (key === "required") out[key] = without(value);
    else if (key === "examples") out[key] = Array.isArray(value) ? value.map((one) => omit(one, fields)) : value;
    else if (key === "default") out[key] = omit(value, fields);
    else if (LISTS.includes(key)) out[key] = Array.isArray(value) ? value.map(again) : value;
    else if (SINGLES.includes(key)) out[key] = again(value);
    else if (key === "dependentSchemas" && isRecord(value)) {
      const kept = Object.entries(value).filter(([name]) => !fields.has(name));
      out[key] = Object.fromEntries(kept.map(([name, inner]) => [name, again(inner)]));
    } else if (key === "dependentRequired" && isRecord(value)) {
      const kept = Object.entries(value).filter(([name]) => !fields.has(name));
      out[key] = Object.fromEntries(kept.map(([name, list]) => [name, without(list)]));
    } else out[key] = value;
  }
  // a definition may serve other places too, so its stripped copy stands here instead of the reference
  const target = targetOf(root, schema.$ref);
  const within = { ...root, ...(isRecord(target) ? target : {}) } as JsonObject; // both are parts of a JSON document
  if (isRecord(target) && [...fields].some((field) => declares(within, field))) {
    delete out.$ref;
    out.allOf = [...(Array.isArray(out.allOf) ? out.allOf : []), again(target)];
  }
  return out;
}

/**
 * Fills arguments in that are not the model's to choose: the fields are gone from the schema a model sees, whatever it
 * writes there is thrown away, and the value made from the call is sent instead. Only top-level fields. A tool that does
 * not declare a field does not get it. The server still checks against its own schema.
 *
 * @param fields by name, each with a function of the call
 * @throws ConfigError for a field without a function
 * @example createClient({ servers, interceptors: [injectArgs({ caller_id: ({ runtime }) => runtime.context?.userId })] })
 */
export function injectArgs<Runtime extends ToolRuntime = ToolRuntime>(
  fields: Readonly<Record<string, InjectedValue<Runtime>>>,
  options: InjectArgsOptions = {},
): RuntimeInterceptor<Runtime> {
  checkOptions(options, ["servers", "undeclared"], "injectArgs(fields, options)");
  if (!isRecord(fields)) {
    throw new ConfigError("injectArgs(fields): fields must be an object of functions of the request, by field", {
      code: "invalid_option",
    });
  }
  const { servers, undeclared = false } = options;
  for (const [field, value] of Object.entries(fields)) {
    if (typeof value === "function") continue;
    throw new ConfigError(
      `injectArgs: the value of "${field}" must be a function of the request, got ${typeof value}`,
      {
        code: "invalid_option",
      },
    );
  }
  const names = new Set(Object.keys(fields));
  const concerns = (server: string) => servers === undefined || servers.includes(server);
  // the same schema is stripped once, so that whoever compiled it need not do so again
  const stripped = new WeakMap<object, JsonObject>();

  async function inject<Extra>(
    request: ToolCallRequest<Runtime>,
    next: Next<Runtime, Extra>,
  ): Promise<ToolCallOutcome<Extra>> {
    if (!concerns(request.server)) return next(request);
    const args = new Map(Object.entries(request.args).filter(([name]) => !names.has(name)));
    const tool = undeclared ? undefined : await request.definition();
    for (const [name, make] of Object.entries(fields)) {
      if (!undeclared && !(tool && declares(tool.inputSchema, name))) continue;
      const value: unknown = await make(request);
      if (value !== undefined) args.set(name, value);
    }
    return next(request.with({ args: Object.fromEntries(args) }));
  }
  return forRuntime(inject, (tool) => {
    const { inputSchema } = tool;
    if (!concerns(tool.server) || ![...names].some((name) => declares(inputSchema, name))) return tool;
    // stripping keeps every value JSON
    const shown = stripped.get(inputSchema) ?? (strip(inputSchema, inputSchema, names) as JsonObject);
    stripped.set(inputSchema, shown);
    return { ...tool, inputSchema: shown };
  });
}

noteFactory(injectArgs, "injectArgs({ field: (request) => value })");
