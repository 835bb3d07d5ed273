import { checkOptions, type Schema } from "@tenon/core";
import { type CacheOptions, createCacheHints } from "./cache.ts";
import type { Service } from "./dispatch.ts";
import type { FetchOptions, HttpOptions, HttpSide } from "./http.ts";
import type { Listening, ListenOptions } from "./listen.ts";
import { createLog, type LogEntry, type LogLevel, logLevelOf } from "./log.ts";
import { createBus, type Notifier } from "./notify.ts";
import { createPaging } from "./paging.ts";
import { createLastingProtocol, type Introduction, identityOf } from "./protocol.ts";
import {
  createRegistry,
  type NoInput,
  type PromptHandler,
  type PromptOptions,
  type ResourceHandler,
  type ResourceOptions,
  type ToolHandler,
  type ToolOptions,
} from "./registry.ts";
import { type RunOptions, runIfEntry } from "./run.ts";
import { createSeal } from "./seal.ts";
import { openStdio } from "./stdio.ts";

export interface ServerOptions<Lifespan = undefined> {
  /** Machine name, for example `"orders"`. */
  name: string;
  version: string;
  title?: string;
  /** For the model: how the tools of this server work together. */
  instructions?: string;
  /**
   * Opens what handlers need (pools, clients) once, before the first request; `close` runs last. Handlers reach the value as
   * `ctx.lifespan`.
   */
  lifespan?: () => Promise<{ value: Lifespan; close?: () => void | Promise<void> }>;
  /** Shows callers the messages of unexpected errors. For development only. Default false. */
  exposeErrors?: boolean;
  /**
   * Keys that seal a waiting question's state, newest first, 32 bytes each as base64url; `loadStateKeys(file)` keeps them in a
   * file. Default: `TENON_STATE_KEYS` (comma-separated), else a key that lives as long as the process.
   */
  stateKeys?: readonly string[];
  /** Seconds a question may wait for its answer. Default 7 days. */
  questionTtlSeconds?: number;
  /** Least severe level of the server's own log. Default: `TENON_LOG_LEVEL`, else `info`. */
  logLevel?: LogLevel;
  /** Receives the server's own log instead of stderr. */
  logSink?: (entry: LogEntry) => void;
  http?: HttpOptions;
  /** How long and for whom clients may keep lists and resources. Default: lists a minute, resources not; private. */
  cache?: CacheOptions;
  /** Items of one page of a list. Default 500. */
  pageSize?: number;
}

const OPTIONS = [
  "name",
  "version",
  "title",
  "instructions",
  "lifespan",
  "exposeErrors",
  "stateKeys",
  "questionTtlSeconds",
  "logLevel",
  "logSink",
  "http",
  "cache",
  "pageSize",
] as const satisfies ReadonlyArray<keyof ServerOptions>;

const WEEK_SECONDS = 7 * 24 * 60 * 60;

/** A server: define first, then serve over any number of transports at once. */
export interface TenonServer<Lifespan = undefined> {
  readonly name: string;
  /**
   * Adds a tool.
   * @throws ConfigError for a duplicate or illegal name, an unknown option, or an input that is not an object schema
   * @example server.tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
   */
  tool<I extends Schema | NoInput = NoInput, O extends Schema | undefined = undefined>(
    name: string,
    options: ToolOptions<I, O>,
    handler: ToolHandler<I, O, Lifespan>,
  ): this;
  /**
   * Adds a resource, or a family of them when the URI is a template (RFC 6570).
   * @example server.resource("order://{orderId}", {}, ({ orderId }) => orders.get(orderId))
   */
  resource(uri: string, options: ResourceOptions, handler: ResourceHandler<Lifespan>): this;
  /** Adds a prompt: a handler that returns text (one user message) or a list of messages. */
  prompt<I extends Schema | NoInput = NoInput>(
    name: string,
    options: PromptOptions<I>,
    handler: PromptHandler<I, Lifespan>,
  ): this;
  /** Answers one HTTP request: the seam for tests and other frameworks. Checks Host and Origin. */
  fetch(request: Request, options?: FetchOptions): Promise<Response>;
  /** Listens on a port or a unix socket. @throws ConnectionError `code: "port_in_use"` */
  listen(options?: ListenOptions): Promise<Listening>;
  /** Serves standard input and output; resolves when the client closes its end. */
  stdio(): Promise<void>;
  /**
   * Serves when the given module is the program's entry, does nothing when it was imported: stdio by default, or what flags
   * (`--transport http --port 8030`) and options say.
   */
  run(meta: ImportMeta, options?: RunOptions): Promise<void>;
  /** Tells clients that asked for it, of both eras and on every transport, that a list or a resource changed. */
  readonly notify: Notifier;
  /** Stops everything this server opened. Safe to call twice. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Makes a server that speaks both protocol eras from one set of definitions.
 * @throws ConfigError for unknown options or a malformed state key
 * @example const server = createServer({ name: "math", version: "1.0.0" })
 */
export function createServer<Lifespan = undefined>(options: ServerOptions<Lifespan>): TenonServer<Lifespan> {
  checkOptions(options, OPTIONS, "createServer(options)");
  const registry = createRegistry();
  const log = createLog(options.name, options.logLevel ?? logLevelOf(process.env.TENON_LOG_LEVEL), options.logSink);
  const introduction: Introduction = {
    name: options.name,
    version: options.version,
    title: options.title,
    instructions: options.instructions,
  };
  const environmentKeys = process.env.TENON_STATE_KEYS?.split(",").filter(Boolean) ?? [];
  let opened: Promise<{ value: Lifespan; close?: () => void | Promise<void> }> | undefined;
  const stateKeys = options.stateKeys ?? environmentKeys;
  const bus = createBus(log);
  const cacheHints = createCacheHints(options.cache);
  const service: Service = {
    registry,
    seal: createSeal(stateKeys, options.questionTtlSeconds ?? WEEK_SECONDS),
    cacheHints,
    // the newest key of the ring: replicas that share it accept each other's cursors
    paging: createPaging(cacheHints, options.pageSize, stateKeys[0]),
    notify: bus.notify,
    log,
    exposeErrors: options.exposeErrors ?? false,
    async lifespan() {
      if (!options.lifespan) return undefined;
      opened ??= options.lifespan();
      return (await opened).value;
    },
  };
  let http: Promise<HttpSide> | undefined;
  // imported when first used: a server on stdio starts without any of it
  const httpSide = (): Promise<HttpSide> => {
    http ??= import("./http.ts").then(({ createHttpSide }) => createHttpSide(service, introduction, bus, options.http));
    return http;
  };
  const closers = new Set<() => Promise<void>>();
  let closing: Promise<void> | undefined;

  const server: TenonServer<Lifespan> = {
    name: options.name,
    tool(name, toolOptions, handler) {
      registry.addTool(name, toolOptions, handler as never); // its schema makes the arguments' type true
      return server;
    },
    resource(uri, resourceOptions, handler) {
      registry.addResource(uri, resourceOptions, handler as never); // its template makes the variables
      return server;
    },
    prompt(name, promptOptions, handler) {
      registry.addPrompt(name, promptOptions, handler as never); // its schema makes the arguments' type true
      return server;
    },
    notify: bus.notify,
    fetch: async (request, fetchOptions) => (await httpSide()).fetch(request, fetchOptions),
    async listen(listenOptions = {}) {
      checkOptions(listenOptions, ["port", "host", "path", "tls", "unixSocket"], "listen(options)");
      await service.lifespan();
      const [side, { listen }, { createFastListener }] = await Promise.all([
        httpSide(),
        import("./listen.ts"),
        import("./fast/listener.ts"),
      ]);
      const identity = identityOf(introduction);
      const listening = await listen(side, { ...options.http, ...listenOptions }, (path, otherwise) =>
        createFastListener({ service, side, identity, path, otherwise }),
      );
      const close = (graceMs?: number): Promise<void> => {
        closers.delete(close);
        return listening.close(graceMs);
      };
      closers.add(close);
      return { ...listening, close };
    },
    async stdio() {
      await service.lifespan();
      const stdio = openStdio((era) => createLastingProtocol(service, introduction, era, bus), log);
      closers.add(stdio.close);
      await stdio.done;
      await stdio.close();
      closers.delete(stdio.close);
    },
    run: (meta, runOptions) => runIfEntry(server, meta, runOptions),
    close() {
      closing ??= (async () => {
        // listeners stop accepting at once; what they still answer and the streams end meanwhile
        const side = await http?.catch(() => undefined); // it failed to open: whoever asked was told
        await Promise.allSettled([...[...closers].map((close) => close()), side?.close()]);
        const value = await opened?.catch(() => undefined); // it failed to open: whoever asked was told
        await value?.close?.();
      })();
      return closing;
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
  return server;
}
