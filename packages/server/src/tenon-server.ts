import type { Mountable } from "./definition/defining.ts";
import type {
  Definition,
  DefinitionKind,
  NoInput,
  PromptHandler,
  PromptOptions,
  ResourceHandler,
  ResourceOptions,
  ToolHandler,
  ToolOptions,
  WorkerToolOptions,
} from "./definition/definitions.ts";
import type { AnySchema } from "./definition/json-schema.ts";
import type { Change } from "./definition/registry.ts";
import type { Notifier } from "./dispatch/notify.ts";
import type { Extension } from "./extension/extensions.ts";
import type { AnyContext } from "./handler/context.ts";
import type { AdminListening, AdminOptions } from "./http/admin.ts";
import type { RunOptions } from "./http/flags.ts";
import type { FetchOptions } from "./http/http.ts";
import type { Listening, ListenOptions } from "./http/listen.ts";
import type { Middleware } from "./middleware/onion.ts";
import type { PageResult } from "./question/pages.ts";
import type { Working } from "./task/tasks.ts";

/** A server: define first, then serve over any number of transports at once. */
export interface TenonServer<Lifespan = undefined, Context = AnyContext> {
  /** As given to `createServer`. */
  readonly name: string;
  /**
   * Adds a tool.
   * @throws ConfigError for a duplicate or illegal name, an unknown option, or an input that is not an object schema
   * @example server.tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
   */
  tool<I extends AnySchema | NoInput = NoInput, O extends AnySchema | undefined = undefined>(
    name: string,
    options: ToolOptions<I, O>,
    handler: ToolHandler<I, O, Lifespan, Context>,
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
  resource(uri: string, options: ResourceOptions, handler: ResourceHandler<Lifespan, Context>): this;
  /** Adds a prompt: a handler that returns text (one user message) or a list of messages. */
  prompt<I extends AnySchema | NoInput = NoInput>(
    name: string,
    options: PromptOptions<I>,
    handler: PromptHandler<I, Lifespan, Context>,
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
  /**
   * Offers an extension of the protocol: its capability is advertised and its methods are answered on every transport.
   * @throws ConfigError for a malformed or taken id, or a method that is taken or belongs to the protocol
   * @example server.extension({ id: "com.example/audit", methods: { "audit/list": { handler: () => ({ entries: [] }) } } })
   */
  extension(extension: Extension): this;
  /** Answers one HTTP request: the seam for tests and other frameworks. Checks Host and Origin. */
  fetch(request: Request, options?: FetchOptions): Promise<Response>;
  /**
   * Listens on a port or a unix socket.
   * @throws ConnectionError `code: "port_in_use"`, `"listen"`; ConfigError for options that cannot be used, such as `"tls"`
   */
  listen(options?: ListenOptions): Promise<Listening>;
  /**
   * Answers health checks of load balancers and orchestrators, on a port of its own and never on the one of {@link listen}:
   * `/healthz` is 200 while the process lives, `/readyz` while it takes requests (what `lifespan` opens is there, the store
   * answers, the server does not close), else 503 with what is missing. `/metrics` is there with `metrics`. Nothing listens unless
   * this is called.
   * @throws ConnectionError `code: "port_in_use"`, `"listen"`; ConfigError for an unknown option or no port
   * @example await server.admin({ port: 9030, metrics: await openTelemetry({ serviceName: "orders" }) });
   */
  admin(options: AdminOptions): Promise<AdminListening>;
  /** Serves standard input and output; resolves when the client closes its end. */
  stdio(): Promise<void>;
  /**
   * Serves when the given module is the program's entry, does nothing when it was imported: stdio by default, or what flags
   * (`--transport http --port 8030`) and options say.
   */
  run(meta: ImportMeta, options?: RunOptions): Promise<void>;
  /**
   * Runs tasks of this server without serving it: the processes that serve with `tasks: { concurrency: 0 }` leave them to this one.
   * Needs a store they share. Keeps the process alive until it is closed.
   * @param options.concurrency tasks at once. Default: the server's `tasks.concurrency`, else 4
   * @throws ConfigError `code: "no_tasks"` where no tool has tasks
   * @example const working = await server.work({ concurrency: 8 }); await working.done;
   */
  work(options?: { concurrency?: number }): Promise<Working>;
  /**
   * Reports that the person has done on a page what `ctx.elicitUrl` sent them there for: to be called by the page's back end,
   * here or in any process with the same store.
   * @param id what the page was opened with
   * @throws TenonError `code: "unknown_elicitation"`, AuthError `code: "foreign_elicitation"`
   */
  completeElicitation(id: string, result?: PageResult): Promise<void>;
  /** Tells clients that asked for it, of both eras and on every transport, that a list or a resource changed. */
  readonly notify: Notifier;
  /** Stops everything this server opened. Safe to call twice. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
