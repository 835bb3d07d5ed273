import {
  type Prompt,
  type Resource,
  type ResourceTemplateType,
  type Tool,
  type ToolAnnotations,
  UriTemplate,
  type Variables,
} from "@modelcontextprotocol/server";
import { ConfigError, checkOptions, type Infer, isRecord, jsonSchemaOf, type Schema } from "@tenon/core";
import { type CacheHint, checkHint } from "./cache.ts";
import type { Completers } from "./completion.ts";
import type { Content } from "./content.ts";
import type { ToolContext } from "./context.ts";
import { readParamHeaders } from "./param-headers.ts";
import { outputSchemaFor } from "./result.ts";

type MaybePromise<T> = T | Promise<T>;
type Returned<O> = O extends Schema<infer _Out, infer In> ? In | Content : unknown;

/** The arguments of a definition without an input schema: none. */
export type NoInput = undefined;
type Args<I> = I extends Schema ? Infer<I> : Record<string, never>;

/** What a tool says about itself. */
export interface ToolOptions<
  I extends Schema | NoInput = Schema | NoInput,
  O extends Schema | undefined = Schema | undefined,
> {
  title?: string;
  /** What it does and when to use it: written for the model. */
  description?: string;
  /** Schema of an object; each property may carry a description. Left out: the tool takes no arguments. */
  input?: I;
  /** Makes the returned value typed for clients: announced as `outputSchema`, checked before it leaves. */
  output?: O;
  /** Hints for clients, such as `{ destructiveHint: true }` or `{ readOnlyHint: true }`. */
  annotations?: ToolAnnotations;
  /** Goes out with the definition as `_meta`. */
  meta?: Record<string, unknown>;
}

export interface ResourceOptions {
  /** Default: the URI. */
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
  /** How long clients may keep what it holds. Default: not at all. */
  cache?: CacheHint;
  /** Of a template: suggests values for its variables. */
  complete?: Completers;
}

export interface PromptOptions<I extends Schema | NoInput = Schema | NoInput> {
  title?: string;
  description?: string;
  /** Schema of an object whose properties are strings: prompt arguments are text on the wire. */
  input?: I;
  /** Suggests values for its arguments. */
  complete?: Completers;
}

export type ToolHandler<I, O, L> = (args: Args<I>, ctx: ToolContext<L>) => MaybePromise<Returned<O>>;
export type ResourceHandler<L> = (
  variables: Readonly<Record<string, string>>,
  ctx: ToolContext<L>,
) => MaybePromise<unknown>;
export type PromptHandler<I, L> = (args: Args<I>, ctx: ToolContext<L>) => MaybePromise<unknown>;

/** A definition made ready to be run; handlers have lost their types here, schemas guard them. */
type Run = (args: never, ctx: ToolContext<never>) => unknown;

export interface CompiledTool {
  readonly name: string;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  readonly listing: Readonly<Record<"modern" | "legacy", Tool>>;
  readonly run: Run;
}
export interface CompiledResource {
  readonly mimeType: string | undefined;
  readonly cache: CacheHint | undefined;
  readonly match: (uri: string) => Record<string, string> | undefined;
  readonly run: Run;
}
export interface CompiledPrompt {
  readonly name: string;
  readonly description: string | undefined;
  readonly input: Schema | undefined;
  readonly run: Run;
}

/** Everything a server offers, compiled once and shared by all requests, connections and eras. */
export interface Registry {
  /** Grows with every change of the lists: what was derived from them is stale then. */
  readonly revision: number;
  /** Completers of every prompt and template, by `prompt <name>` and `resource <uri template>`. */
  readonly completers: ReadonlyMap<string, Completers>;
  readonly tools: ReadonlyMap<string, CompiledTool>;
  readonly prompts: ReadonlyMap<string, CompiledPrompt>;
  readonly lists: {
    readonly tools: Readonly<Record<"modern" | "legacy", readonly Tool[]>>;
    readonly resources: readonly Resource[];
    readonly templates: readonly ResourceTemplateType[];
    readonly prompts: readonly Prompt[];
  };
  findResource(uri: string): { resource: CompiledResource; variables: Record<string, string> } | undefined;
  addTool(name: string, options: ToolOptions, run: Run): void;
  addResource(uri: string, options: ResourceOptions, run: Run): void;
  addPrompt(name: string, options: PromptOptions, run: Run): void;
}

const NAME = /^[A-Za-z0-9_.-]{1,128}$/;

function checkName(kind: string, name: string, taken: ReadonlyMap<string, unknown>): void {
  if (!NAME.test(name)) {
    throw new ConfigError(
      `${kind} name ${JSON.stringify(name)} is not allowed: use 1 to 128 of A-Z a-z 0-9 _ . - (2026-07-28, tool names)`,
      { code: "name", data: { name } },
    );
  }
  if (taken.has(name)) {
    throw new ConfigError(`${kind} "${name}" is defined twice; names are unique within a server`, {
      code: "duplicate",
      data: { name },
    });
  }
}

function inputSchema(where: string, input: Schema | NoInput): Tool["inputSchema"] {
  if (input === undefined) return { type: "object", properties: {} };
  const json = jsonSchemaOf(input, "input", `${where}: input`);
  if (json.type !== "object") {
    throw new ConfigError(
      `${where}: input must be the schema of an object, such as z.object({ … }); it is ${JSON.stringify(json.type)}`,
      {
        code: "schema",
      },
    );
  }
  return json as Tool["inputSchema"]; // its type was just checked
}

function promptArguments(where: string, input: Schema | NoInput): NonNullable<Prompt["arguments"]> {
  const json = inputSchema(where, input);
  const required = Array.isArray(json.required) ? json.required : [];
  return Object.entries(json.properties ?? {}).map(([name, property]) => ({
    name,
    required: required.includes(name),
    ...(isRecord(property) && typeof property.description === "string" && { description: property.description }),
  }));
}

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);

/** Variables of a matched template as strings: a list variable is joined as it was written. */
function strings(variables: Variables): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) =>
      [name, Array.isArray(value) ? value.join(",") : value].map(String),
    ),
  );
}

export function createRegistry(): Registry {
  const tools = new Map<string, CompiledTool>();
  const prompts = new Map<string, CompiledPrompt>();
  const fixed = new Map<string, CompiledResource>();
  const templated = new Map<string, CompiledResource>();
  const lists = {
    tools: { modern: [] as Tool[], legacy: [] as Tool[] },
    resources: [] as Resource[],
    templates: [] as ResourceTemplateType[],
    prompts: [] as Prompt[],
  };
  const completers = new Map<string, Completers>();
  let revision = 0;
  return {
    get revision() {
      return revision;
    },
    completers,
    tools,
    prompts,
    lists,
    findResource(uri) {
      for (const resource of [fixed.get(uri), ...templated.values()]) {
        const variables = resource?.match(uri);
        if (resource && variables) return { resource, variables };
      }
      return undefined;
    },
    addTool(name, options, run) {
      const where = `tool ${name}`;
      checkName("Tool", name, tools);
      checkOptions(options, ["title", "description", "input", "output", "annotations", "meta"], where);
      const output = options.output && jsonSchemaOf(options.output, "output", `${where}: output`);
      const input = inputSchema(where, options.input);
      readParamHeaders(input, `${where}: input`);
      const listing = (era: "modern" | "legacy"): Tool => ({
        name,
        ...(options.title !== undefined && { title: options.title }),
        ...(options.description !== undefined && { description: options.description }),
        inputSchema: input,
        ...(output && { outputSchema: outputSchemaFor(era, output) as NonNullable<Tool["outputSchema"]> }), // a JSON Schema
        ...(options.annotations && { annotations: options.annotations }),
        ...(options.meta && { _meta: options.meta }),
      });
      const compiled = { name, input: options.input, output: options.output, run } as const;
      const tool: CompiledTool = { ...compiled, listing: { modern: listing("modern"), legacy: listing("legacy") } };
      tools.set(name, tool);
      revision += 1;
      for (const era of ["modern", "legacy"] as const) lists.tools[era].push(tool.listing[era]);
      for (const era of ["modern", "legacy"] as const) lists.tools[era].sort(byName);
    },
    addResource(uri, options, run) {
      checkOptions(options, ["name", "title", "description", "mimeType", "cache", "complete"], `resource ${uri}`);
      if (options.cache) checkHint(options.cache, `resource ${uri}: cache`);
      if (fixed.has(uri) || templated.has(uri)) {
        throw new ConfigError(`Resource "${uri}" is defined twice; a URI is unique within a server`, {
          code: "duplicate",
        });
      }
      if (!/^[a-z][a-z0-9+.-]*:/i.test(uri)) {
        throw new ConfigError(`Resource URI "${uri}" has no scheme; write for example "company://policies/return"`, {
          code: "uri",
        });
      }
      const { name = uri, cache, complete, ...about } = options;
      revision += 1;
      if (UriTemplate.isTemplate(uri)) {
        const template = new UriTemplate(uri);
        const match = (given: string): Record<string, string> | undefined => {
          const found = template.match(given);
          return found ? strings(found) : undefined;
        };
        templated.set(uri, { mimeType: options.mimeType, cache, match, run });
        completers.set(`resource ${uri}`, complete ?? {});
        lists.templates.push({ uriTemplate: uri, name, ...about });
      } else {
        fixed.set(uri, { mimeType: options.mimeType, cache, match: (given) => (given === uri ? {} : undefined), run });
        lists.resources.push({ uri, name, ...about });
      }
    },
    addPrompt(name, options, run) {
      const where = `prompt ${name}`;
      checkName("Prompt", name, prompts);
      checkOptions(options, ["title", "description", "input", "complete"], where);
      revision += 1;
      completers.set(`prompt ${name}`, options.complete ?? {});
      prompts.set(name, { name, description: options.description, input: options.input, run });
      lists.prompts.push({
        name,
        ...(options.title !== undefined && { title: options.title }),
        ...(options.description !== undefined && { description: options.description }),
        arguments: promptArguments(where, options.input),
      });
      lists.prompts.sort(byName);
    },
  };
}
