import {
  type Prompt,
  type Resource,
  type ResourceTemplateType,
  type Tool,
  UriTemplate,
  type Variables,
} from "@modelcontextprotocol/server";
import { ConfigError, type Era, isRecord, type JsonObject, META, type Schema } from "@tenon/core";
import { checkOptions, jsonSchemaOf } from "@tenon/core/internal";
import { type CompiledTask, compileTask } from "../task/options.ts";
import { type Access, compileAccess, type Viewer } from "./access.ts";
import { ARGUMENT_LIMITS, type CompiledInput, prepareInput } from "./arguments.ts";
import { type CacheHint, checkHint } from "./cache.ts";
import type { Completers } from "./completion.ts";
import type { AboutOptions, NoInput, PromptOptions, ResourceOptions, Run, ToolOptions } from "./definitions.ts";
import { type AnySchema, toSchema } from "./json-schema.ts";
import { readParamHeaders } from "./param-headers.ts";
import { outputSchemaFor } from "./result.ts";
import { checkTimeoutMs } from "./time-limit.ts";

/** Where a definition of a mounted server really lives. */
export interface Mounted<Home> {
  readonly home: Home;
  /** Its name or URI there. */
  readonly name: string;
  /** What `name` got in front of it. */
  readonly prefix: string;
}

type TagsOf = (viewer: Viewer) => readonly string[];

interface Compiled {
  readonly access: Access;
  readonly timeoutMs: number | undefined;
  readonly tags: readonly string[];
  readonly run: Run;
}
/** A tool ready to be listed and run. */
export interface CompiledTool extends Compiled {
  readonly name: string;
  readonly input: CompiledInput;
  readonly output: Schema | undefined;
  /** Calls with the same idempotency key are one call. */
  readonly idempotent: boolean;
  /** How its calls become tasks; undefined: never. */
  readonly task: CompiledTask | undefined;
  readonly listing: Readonly<Record<Era, Tool>>;
}
/** A resource, or a template of them, ready to be listed and read. */
export interface CompiledResource extends Compiled {
  readonly uri: string;
  readonly mimeType: string | undefined;
  readonly match: (uri: string) => Record<string, string> | undefined;
  readonly cache: CacheHint | undefined;
  readonly complete: Completers;
  readonly listing: Resource | ResourceTemplateType;
}
/** A prompt ready to be listed and rendered. */
export interface CompiledPrompt extends Compiled {
  readonly name: string;
  readonly description: string | undefined;
  readonly input: CompiledInput;
  readonly complete: Completers;
  readonly listing: Prompt;
}

const NAME = /^[A-Za-z0-9_.-]{1,128}$/;
const ABOUT = [
  "title",
  "description",
  "icons",
  "meta",
  "deprecated",
  "timeoutMs",
  "tags",
  "visible",
  "scopes",
] as const satisfies ReadonlyArray<keyof AboutOptions>;
/** Keys of the options of a tool whose function is given. */
export const TOOL_OPTIONS = [
  ...ABOUT,
  "input",
  "output",
  "annotations",
  "idempotent",
  "unknownArguments",
  "argumentLimits",
  "task",
] as const satisfies ReadonlyArray<keyof ToolOptions>;
/** Hints that people look for among the options themselves. */
export const ANNOTATION_HINTS: Readonly<Record<string, string>> = Object.fromEntries(
  ["readOnly", "destructive", "idempotent", "openWorld"].flatMap((word) => [
    [word, `annotations.${word}Hint`],
    [`${word}Hint`, `annotations.${word}Hint`],
  ]),
);
const RESOURCE = [
  ...ABOUT,
  "name",
  "mimeType",
  "size",
  "annotations",
  "cache",
  "complete",
] as const satisfies ReadonlyArray<keyof ResourceOptions>;
const PROMPT = [...ABOUT, "input", "complete"] as const satisfies ReadonlyArray<keyof PromptOptions>;

/** @throws ConfigError `code: "name"` */
export function checkName(kind: string, name: string): void {
  if (NAME.test(name)) return;
  throw new ConfigError(
    `${kind} name ${JSON.stringify(name)} is not allowed: use 1 to 128 of A-Z a-z 0-9 _ . - (2026-07-28, tool names)`,
    { code: "name", data: { name } },
  );
}

/** An object at the root, as clients need it: said outright, or by every branch of a union. */
function withObjectRoot(json: JsonObject): JsonObject | undefined {
  if (json.type === "object") return json;
  if (json.type !== undefined) return undefined;
  const isObject = (branch: unknown): boolean => isRecord(branch) && withObjectRoot(branch as JsonObject) !== undefined; // part of JSON
  const branches = json.anyOf ?? json.oneOf;
  const all = Array.isArray(branches) && branches.length > 0 && branches.every(isObject);
  const some = Array.isArray(json.allOf) && json.allOf.some(isObject);
  return all || some || isRecord(json.properties) ? { type: "object", ...json } : undefined;
}

function compileInput(
  where: string,
  input: AnySchema | NoInput,
  own: Pick<ToolOptions, "unknownArguments" | "argumentLimits">,
): CompiledInput {
  if (input === undefined) return prepareInput(undefined, { type: "object", properties: {} }, own);
  const schema = toSchema(input, `${where}: input`);
  const said = jsonSchemaOf(schema, "input", `${where}: input`);
  const json = withObjectRoot(said);
  if (!json) {
    throw new ConfigError(
      `${where}: input must be the schema of an object, such as z.object({ … }); it is ${JSON.stringify(said.type ?? said)}`,
      { code: "schema" },
    );
  }
  return prepareInput(schema, json, own);
}

function checkIcons(where: string, icons: AboutOptions["icons"] = []): void {
  icons.forEach((icon, i) => {
    if (/^https:\/\/[^/@]+(\/|$)/i.test(icon.src) || /^data:image\//i.test(icon.src)) return;
    throw new ConfigError(
      `${where}: icons[${i}].src must be an https: or data:image/ address without credentials, got "${icon.src}"`,
      {
        code: "icon",
      },
    );
  });
}

/** The fields of a listing that every kind shares. */
function about(where: string, options: AboutOptions) {
  const { title, description, icons, meta, deprecated, timeoutMs } = options;
  checkTimeoutMs(timeoutMs, where);
  checkIcons(where, icons);
  const note = deprecated === undefined ? undefined : `Deprecated: ${deprecated}`;
  const said = [description, note].filter((text) => text !== undefined).join("\n\n");
  return {
    ...(title !== undefined && { title }),
    ...(said !== "" && { description: said }),
    ...(icons && { icons: icons.map((icon) => ({ ...icon })) }),
    ...((meta || deprecated !== undefined) && {
      _meta: { ...meta, ...(deprecated !== undefined && { [META.deprecated]: deprecated }) },
    }),
  };
}

/** @throws ConfigError for an illegal name, option, icon or schema, naming the tool and the field */
export function compileTool(name: string, options: ToolOptions, run: Run, tagsOf?: TagsOf): CompiledTool {
  const where = `tool ${name}`;
  checkName("Tool", name);
  checkOptions(options, [...TOOL_OPTIONS, "worker"], where, ANNOTATION_HINTS);
  if (options.argumentLimits) checkOptions(options.argumentLimits, ARGUMENT_LIMITS, `${where}: argumentLimits`);
  const input = compileInput(where, options.input, options);
  readParamHeaders(input.json, `${where}: input`);
  const output = options.output && toSchema(options.output, `${where}: output`);
  const outputJson = output && jsonSchemaOf(output, "output", `${where}: output`);
  const task = compileTask(where, options.task);
  const { _meta, ...said } = about(where, options);
  const shared = {
    name,
    ...said,
    ...((_meta || task) && { _meta: { ..._meta, ...(task && { [META.task]: task.use }) } }),
    inputSchema: input.json as Tool["inputSchema"], // its root is an object: compileInput checked
    ...(options.annotations && { annotations: options.annotations }),
  };
  const listing = (era: Era): Tool => ({
    ...shared,
    ...(outputJson && { outputSchema: outputSchemaFor(era, outputJson) }),
  });
  return {
    name,
    input,
    output,
    idempotent: options.idempotent ?? false,
    task,
    listing: { modern: listing("modern"), legacy: listing("legacy") },
    access: compileAccess(where, options, tagsOf),
    timeoutMs: options.timeoutMs,
    tags: options.tags ?? [],
    run,
  };
}

/** Variables of a matched template as strings: a list variable is joined as it was written. */
function strings(variables: Variables): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) =>
      [name, Array.isArray(value) ? value.join(",") : value].map(String),
    ),
  );
}

/** How URIs match a fixed URI or a template. */
export function matcher(uri: string): CompiledResource["match"] {
  if (!UriTemplate.isTemplate(uri)) return (given) => (given === uri ? {} : undefined);
  const template = new UriTemplate(uri);
  return (given) => {
    const found = template.match(given);
    return found ? strings(found) : undefined;
  };
}

/** @throws ConfigError for a URI without a scheme, an unknown option or an illegal icon */
export function compileResource(uri: string, options: ResourceOptions, run: Run, tagsOf?: TagsOf): CompiledResource {
  const where = `resource ${uri}`;
  checkOptions(options, RESOURCE, where);
  if (!/^[a-z][a-z0-9+.-]*:/i.test(uri)) {
    throw new ConfigError(`Resource URI "${uri}" has no scheme; write for example "company://policies/return"`, {
      code: "uri",
    });
  }
  const { name = uri, mimeType, size, annotations, cache, complete = {} } = options;
  if (cache) checkHint(cache, `${where}: cache`);
  const shared = {
    name,
    ...about(where, options),
    ...(mimeType !== undefined && { mimeType }),
    ...(annotations && { annotations }),
  };
  return {
    uri,
    mimeType,
    match: matcher(uri),
    cache,
    complete,
    listing: UriTemplate.isTemplate(uri)
      ? { uriTemplate: uri, ...shared }
      : { uri, ...shared, ...(size !== undefined && { size }) },
    access: compileAccess(where, options, tagsOf),
    timeoutMs: options.timeoutMs,
    tags: options.tags ?? [],
    run,
  };
}

function promptArguments(json: JsonObject): NonNullable<Prompt["arguments"]> {
  const required = Array.isArray(json.required) ? json.required : [];
  return Object.entries(isRecord(json.properties) ? json.properties : {}).map(([name, property]) => ({
    name,
    required: required.includes(name),
    ...(isRecord(property) && typeof property.title === "string" && { title: property.title }),
    ...(isRecord(property) && typeof property.description === "string" && { description: property.description }),
  }));
}

/** @throws ConfigError for an illegal name, option, icon or schema, naming the prompt and the field */
export function compilePrompt(name: string, options: PromptOptions, run: Run, tagsOf?: TagsOf): CompiledPrompt {
  const where = `prompt ${name}`;
  checkName("Prompt", name);
  checkOptions(options, PROMPT, where);
  const input = compileInput(where, options.input, {});
  return {
    name,
    description: options.description,
    input,
    complete: options.complete ?? {},
    listing: { name, ...about(where, options), arguments: promptArguments(input.json) },
    access: compileAccess(where, options, tagsOf),
    timeoutMs: options.timeoutMs,
    tags: options.tags ?? [],
    run,
  };
}
