import { ConfigError } from "@tenon/core";
import type { Workers } from "../handler/workers.ts";
import type { Middleware } from "../middleware/onion.ts";
import type { TenonServer } from "../tenon-server.ts";
import {
  type Definition,
  definePrompt,
  defineResource,
  defineTool,
  isDefinition,
  type NoInput,
  type ToolHandler,
  type ToolOptions,
  type WorkerToolOptions,
} from "./definitions.ts";
import type { AnySchema } from "./json-schema.ts";
import { mount } from "./mount.ts";
import type { Home } from "./registry.ts";

/** The side of a server where its author says what it offers. */
export type Defining<Lifespan> = Pick<
  TenonServer<Lifespan>,
  "tool" | "resource" | "prompt" | "use" | "mount" | "remove" | "replace" | "onChange"
>;

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
  self: () => TenonServer<Lifespan>,
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
