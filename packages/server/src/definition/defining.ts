import { ConfigError } from "@tenon/core";
import type { Workers } from "../handler/workers.ts";
import type { Middleware } from "../middleware/onion.ts";
import {
  type Definition,
  type DefinitionKind,
  definePrompt,
  defineResource,
  defineTool,
  isDefinition,
  type NoInput,
  type PromptHandler,
  type PromptOptions,
  type ResourceHandler,
  type ResourceOptions,
  type ToolHandler,
  type ToolOptions,
  type WorkerToolOptions,
} from "./definitions.ts";
import type { AnySchema } from "./json-schema.ts";
import { mount } from "./mount.ts";
import type { Change, Home } from "./registry.ts";

/** The side of a server where its author says what it offers. */
export interface Defining<Lifespan> {
  /**
   * Adds a tool.
   * @throws ConfigError for a duplicate or illegal name, an unknown option, or an input that is not an object schema
   * @example server.tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
   */
  tool<I extends AnySchema | NoInput = NoInput, O extends AnySchema | undefined = undefined>(
    name: string,
    options: ToolOptions<I, O>,
    handler: ToolHandler<I, O, Lifespan>,
  ): this;
  /**
   * Adds a tool whose function runs in a worker thread, so that it may block.
   * @example server.tool("resize", { input: Picture, worker: new URL("./resize.js", import.meta.url) })
   */
  tool(name: string, options: WorkerToolOptions): this;
  /**
   * Adds a resource, or a family of them when the URI is a template (RFC 6570).
   * @example server.resource("order://{orderId}", {}, ({ orderId }) => orders.get(orderId))
   */
  resource(uri: string, options: ResourceOptions, handler: ResourceHandler<Lifespan>): this;
  /** Adds a prompt: a handler that returns text (one user message) or a list of messages. */
  prompt<I extends AnySchema | NoInput = NoInput>(
    name: string,
    options: PromptOptions<I>,
    handler: PromptHandler<I, Lifespan>,
  ): this;
  /**
   * Adds definitions made with `defineTool`, `defineResource` and `definePrompt`, and middleware around every request (the
   * first added is the outermost).
   * @throws ConfigError as {@link tool} does
   * @example server.use(orderTools, log())
   */
  use(...parts: ReadonlyArray<Definition<Lifespan> | ReadonlyArray<Definition<Lifespan>> | Middleware>): this;
  /**
   * Offers another server's definitions here: tools and prompts as `prefix_name`, resources with the prefix as the first part
   * after the scheme (`order://{id}` becomes `order://prefix/{id}`). The other server's middleware, lifespan, argument rules
   * and visibility stay with its definitions, later changes follow, and closing this server closes its lifespan.
   * @throws ConfigError for a name that exists already
   */
  mount(prefix: string, other: Mountable): this;
  /** Takes a definition away; running calls finish. @throws ConfigError `code: "unknown_definition"` */
  remove(kind: DefinitionKind, name: string): this;
  /** Puts a definition in the place of the one with its name, without a moment of neither. @throws ConfigError as {@link remove} */
  replace(definition: Definition<Lifespan>): this;
  /** Calls `listener` after a definition was added, removed or replaced; returns how to stop that. */
  onChange(listener: (change: Change) => void): () => void;
}

/** What can be mounted: a server made by `createServer`, whatever its lifespan. */
export interface Mountable {
  readonly name: string;
  close(): Promise<void>;
}

/** How a server that mounts another reaches what is behind its face. */
const homes = new WeakMap<object, Home>();

/** Makes a server mountable. */
export function registerHome(server: Mountable, home: Home): void {
  homes.set(server, home);
}

/**
 * The defining side of one server.
 * @param self the server, which every method returns so that calls can be chained
 */
export function createDefining<Lifespan>(
  parts: { home: Home; middleware: Middleware[]; workers: Workers },
  self: () => Defining<Lifespan>,
): { defining: Defining<Lifespan>; closeMounted(): Promise<void> } {
  const { home, middleware, workers } = parts;
  const { registry } = home;
  const mounted = new Set<Mountable>();

  const add = (definition: Definition<Lifespan>): void => {
    const { kind, name } = definition;
    // a definition for this lifespan; the service opens it for every run
    const given = definition.run;
    const worker = kind === "tool" && "worker" in definition.options ? definition.options.worker : undefined;
    if ((given === undefined) === (worker === undefined)) {
      throw new ConfigError(`${kind} ${name}: give either a handler or options.worker`, { code: "handler" });
    }
    const run = worker ? workers.runner(worker, `tool ${name}`) : given;
    if (run === undefined) return; // one of both was given
    if (kind === "tool") registry.addTool(name, definition.options, run);
    else if (kind === "resource") registry.addResource(name, definition.options, run);
    else registry.addPrompt(name, definition.options, run);
  };

  const defining: Defining<Lifespan> = {
    tool<I extends AnySchema | NoInput, O extends AnySchema | undefined>(
      name: string,
      toolOptions: ToolOptions<I, O> | WorkerToolOptions,
      handler?: ToolHandler<I, O, Lifespan>,
    ) {
      // the overloads give a handler exactly where there is no worker; `add` checks callers without types
      add(
        handler
          ? defineTool(name, toolOptions as ToolOptions<I, O>, handler)
          : defineTool(name, toolOptions as WorkerToolOptions),
      );
      return self();
    },
    resource(uri, resourceOptions, handler) {
      add(defineResource(uri, resourceOptions, handler));
      return self();
    },
    prompt(name, promptOptions, handler) {
      add(definePrompt(name, promptOptions, handler));
      return self();
    },
    use(...parts) {
      for (const part of parts.flat()) {
        if (isDefinition(part)) add(part);
        else if (typeof part === "function") middleware.push(part);
        else {
          throw new ConfigError(
            `use: expected a definition (defineTool, defineResource, definePrompt) or a middleware function, got ${typeof part}`,
            {
              code: "use",
            },
          );
        }
      }
      return self();
    },
    mount(prefix, other) {
      const inside = homes.get(other);
      if (!inside) throw new ConfigError("mount: expected a server made by createServer", { code: "mount" });
      mount(registry, prefix, inside);
      mounted.add(other);
      return self();
    },
    remove(kind, name) {
      registry.remove(kind, name);
      return self();
    },
    replace(definition) {
      registry.replacing(definition.kind, definition.name, () => add(definition));
      return self();
    },
    onChange: (listener) => registry.onChange(listener),
  };
  return {
    defining,
    async closeMounted() {
      await Promise.allSettled([...mounted].map((other) => other.close()));
    },
  };
}
