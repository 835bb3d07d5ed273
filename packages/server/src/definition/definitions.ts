import type { CallToolResult, Icon, Resource, ToolAnnotations } from "@modelcontextprotocol/server";
import type { Infer, Schema } from "@tenon/core";
import type { AnyContext, ToolContext } from "../handler/context.ts";
import type { TaskUse, ToolTaskOptions } from "../task/options.ts";
import type { AccessOptions } from "./access.ts";
import type { ArgumentLimits, UnknownArguments } from "./arguments.ts";
import type { CacheHint } from "./cache.ts";
import type { Completers } from "./completion.ts";
import type { Content } from "./content.ts";
import type { AnySchema } from "./json-schema.ts";

type MaybePromise<T> = T | Promise<T>;
type Returned<O> = O extends Schema<infer _Out, infer In> ? In | Content | CallToolResult : unknown;

/** The arguments of a definition without an input schema: none. */
export type NoInput = undefined;
/** The arguments a handler gets: inferred from a schema library's schema, open for JSON Schema written by hand. */
export type Args<I> = I extends Schema ? Infer<I> : I extends NoInput ? Record<string, never> : Record<string, unknown>;

/** What tools, resources and prompts say about themselves in the same words. */
export interface AboutOptions extends AccessOptions {
  /** Name for people. Clients show the name on the wire where it is left out. */
  title?: string;
  /** What it does and when to use it: written for the model. */
  description?: string;
  /** Pictures for people; `https:` or `data:image/` only. */
  icons?: readonly Icon[];
  /** Goes out with the definition as `_meta`. */
  meta?: Readonly<Record<string, unknown>>;
  /**
   * Milliseconds one run of its function may take; a question ends a run, so what a person takes to answer does not count.
   * Then `ctx.signal` fires and the caller is told that it may have taken effect. Default: the server's `timeoutMs`; in a task none.
   */
  timeoutMs?: number;
  /** What to use instead, such as `"use refund_v2 instead"`: appended to the description and sent in `_meta`. */
  deprecated?: string;
}

/** What a tool says about itself. */
export interface ToolOptions<
  I extends AnySchema | NoInput = AnySchema | NoInput,
  O extends AnySchema | undefined = AnySchema | undefined,
> extends AboutOptions {
  /** Schema of an object; each property may carry a description. Left out: the tool takes no arguments. */
  input?: I;
  /** Makes the returned value typed for clients: announced as `outputSchema`, checked before it leaves. */
  output?: O;
  /** Hints for clients, such as `{ destructiveHint: true }` or `{ readOnlyHint: true }`. */
  annotations?: ToolAnnotations;
  /**
   * Makes calls with the same `_meta["dev.tenon/idempotency-key"]` by the same caller one call: it runs once, and the others
   * get its outcome, marked `_meta["dev.tenon/replayed"]`. Default false; calls that become tasks are one in any case.
   */
  idempotent?: boolean;
  /**
   * What happens to arguments the schema does not name. Default: what the schema says (`additionalProperties`), else the
   * server's `unknownArguments`. Looks at the first level; what lies deeper is the schema's business.
   */
  unknownArguments?: UnknownArguments;
  /** Limits of one call's arguments, where they differ from the server's `argumentLimits`. */
  argumentLimits?: Partial<ArgumentLimits>;
  /**
   * Makes calls tasks (2026-07-28, tasks extension): the caller gets a handle at once, and the function runs on whatever becomes of
   * the request, the process and the machine. `"optional"` for clients that declare the extension, while every other gets the
   * plain call; `"required"` for every call. Default `"never"`.
   */
  task?: TaskUse | ToolTaskOptions;
}

/** What a tool says about itself whose function runs in a worker thread. */
export interface WorkerToolOptions<I extends AnySchema | NoInput = AnySchema | NoInput> extends ToolOptions<I> {
  /** Module whose default export is a {@link WorkerFunction}: `new URL("./heavy.js", import.meta.url)`. */
  worker: URL;
}

/** What a resource says about itself. */
export interface ResourceOptions extends AboutOptions {
  /** Default: the URI. */
  name?: string;
  /** Type of what it holds, such as `"text/markdown"`. Default: none is named. */
  mimeType?: string;
  /** Bytes, where they are known. */
  size?: number;
  /** Hints for clients: audience, priority, last change. */
  annotations?: NonNullable<Resource["annotations"]>;
  /** How long and for whom what it holds may be kept. Default: the server's `cache`, which says not at all. */
  cache?: CacheHint;
  /** Suggests values for the variables of a URI template. */
  complete?: Completers;
}

/** What a prompt says about itself. */
export interface PromptOptions<I extends AnySchema | NoInput = AnySchema | NoInput> extends AboutOptions {
  /** Schema of an object whose properties are strings: prompt arguments are text on the wire. */
  input?: I;
  /** Suggests values for arguments. */
  complete?: Completers;
}

/** A tool's function. */
export type ToolHandler<I, O, L, C = AnyContext> = (args: Args<I>, ctx: ToolContext<L, C>) => MaybePromise<Returned<O>>;
/** A resource's function; `variables` are those of its URI template. */
export type ResourceHandler<L, C = AnyContext> = (
  variables: Readonly<Record<string, string>>,
  ctx: ToolContext<L, C>,
) => MaybePromise<unknown>;
/** A prompt's function. */
export type PromptHandler<I, L, C = AnyContext> = (args: Args<I>, ctx: ToolContext<L, C>) => MaybePromise<unknown>;

/** A handler that lost the types of its arguments; its schema or template guards them. */
export type Run<L = never> = (args: never, ctx: ToolContext<L>) => unknown;

const brand = Symbol.for("tenon.definition");

/** A tool, resource or prompt as a value: made in one module, given to any server by `server.use(…)`. */
export type Definition<L = never> = { readonly [brand]: true } & (
  | { readonly kind: "tool"; readonly name: string; readonly options: ToolOptions; readonly run: Run<L> }
  | { readonly kind: "tool"; readonly name: string; readonly options: WorkerToolOptions; readonly run?: undefined }
  | { readonly kind: "resource"; readonly name: string; readonly options: ResourceOptions; readonly run: Run<L> }
  | { readonly kind: "prompt"; readonly name: string; readonly options: PromptOptions; readonly run: Run<L> }
);
/** The kinds of definitions. */
export type DefinitionKind = Definition["kind"];

/** Whether `value` was made by one of the `define…` functions. */
export function isDefinition(value: unknown): value is Definition {
  return typeof value === "object" && value !== null && brand in value;
}

/**
 * A tool as a value. A handler that uses the server's lifespan names its type: `(args, ctx: ToolContext<Db>) => …`; the
 * definition then fits only servers that open one.
 *
 * @example export const add = defineTool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
 */
export function defineTool<
  I extends AnySchema | NoInput = NoInput,
  O extends AnySchema | undefined = undefined,
  L = unknown,
>(name: string, options: ToolOptions<I, O>, handler: ToolHandler<I, O, L>): Definition<L>;
/** A tool whose function runs in a worker thread. */
export function defineTool(name: string, options: WorkerToolOptions): Definition<unknown>;
export function defineTool<L>(name: string, options: ToolOptions | WorkerToolOptions, run?: Run<L>): Definition<L> {
  return run
    ? { [brand]: true, kind: "tool", name, options, run }
    : { [brand]: true, kind: "tool", name, options: options as WorkerToolOptions }; // by the second overload
}

/**
 * A resource as a value, or a family of them when the URI is a template (RFC 6570).
 * @example export const policy = defineResource("company://policies/return", { mimeType: "text/markdown" }, () => text)
 */
export function defineResource<L = unknown>(
  uri: string,
  options: ResourceOptions,
  handler: ResourceHandler<L>,
): Definition<L> {
  return { [brand]: true, kind: "resource", name: uri, options, run: handler };
}

/**
 * A prompt as a value.
 * @example export const reply = definePrompt("reply", { input: z.object({ id: z.string() }) }, ({ id }) => `About ${id}`)
 */
export function definePrompt<I extends AnySchema | NoInput = NoInput, L = unknown>(
  name: string,
  options: PromptOptions<I>,
  handler: PromptHandler<I, L>,
): Definition<L> {
  return { [brand]: true, kind: "prompt", name, options, run: handler };
}
