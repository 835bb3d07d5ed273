import { ConfigError, checkOptions, type Schema } from "@tenon/core";
import { createMemoryStore, type OutcomeStore } from "@tenon/store";
import type { Service } from "./dispatch.ts";
import { createHttpSide, type FetchOptions, type HttpOptions, type HttpSide } from "./http.ts";
import { type Listening, type ListenOptions, listen } from "./listen.ts";
import { createLog, type LogEntry, type LogLevel, logLevelOf } from "./log.ts";
import { type CompletionOptions, completePage } from "./pages.ts";
import { createProtocol, type Introduction } from "./protocol.ts";
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
  /** Seconds the answer to `ctx.elicitUrl` waits for the page's report before the person is asked again. Default 20. */
  pageWaitSeconds?: number;
  /**
   * Remembers which questions were answered and with what outcome, and idempotent calls. Default: in memory, bounded, for this
   * process. Who made it closes it.
   */
  store?: OutcomeStore;
  /** Whether, or how many, other processes serve the same: needs a shared `store` and the same `stateKeys`. Default false. */
  replicas?: boolean | number;
  /** Bytes of a call's journal up to which it travels with the client; larger ones go to the store. Default 64 KiB. */
  spillBytes?: number;
  /** Least severe level of the server's own log. Default: `TENON_LOG_LEVEL`, else `info`. */
  logLevel?: LogLevel;
  /** Receives the server's own log instead of stderr. */
  logSink?: (entry: LogEntry) => void;
  http?: HttpOptions;
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
  "pageWaitSeconds",
  "store",
  "replicas",
  "spillBytes",
  "logLevel",
  "logSink",
  "http",
] as const satisfies ReadonlyArray<keyof ServerOptions>;

const WEEK_SECONDS = 7 * 24 * 60 * 60;
const PAGE_WAIT_SECONDS = 20;
const SPILL_BYTES = 64 * 1024;

/** A question answered at another replica must be readable there, and must not take effect there a second time. */
function checkReplicas(replicas: boolean | number, store: OutcomeStore | undefined, keys: readonly string[]): void {
  if (replicas === false || (typeof replicas === "number" && replicas <= 1)) return;
  const missing = [
    ...(store?.shared ? [] : ["a store they share, such as createPostgresStore({ url })"]),
    ...(keys.length > 0 ? [] : ["the same stateKeys (or TENON_STATE_KEYS)"]),
  ];
  if (missing.length === 0) return;
  throw new ConfigError(
    `createServer: replicas need ${missing.join(" and ")}; without, an answer could take effect twice`,
    {
      code: "replicas",
    },
  );
}

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
  /**
   * Reports that the person has done on a page what `ctx.elicitUrl` sent them there for: to be called by the page's back end,
   * here or in any process with the same store.
   * @param id what the page was opened with
   * @throws TenonError `code: "unknown_elicitation"`, AuthError `code: "foreign_elicitation"`
   */
  completeElicitation(id: string, options?: CompletionOptions): Promise<void>;
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
  const stateKeys = options.stateKeys ?? process.env.TENON_STATE_KEYS?.split(",").filter(Boolean) ?? [];
  checkReplicas(options.replicas ?? false, options.store, stateKeys);
  const store = options.store ?? createMemoryStore();
  const questionTtlSeconds = options.questionTtlSeconds ?? WEEK_SECONDS;
  let opened: Promise<{ value: Lifespan; close?: () => void | Promise<void> }> | undefined;
  const service: Service = {
    registry,
    seal: createSeal(stateKeys, questionTtlSeconds),
    store,
    questionTtlMs: questionTtlSeconds * 1_000,
    pageWaitMs: (options.pageWaitSeconds ?? PAGE_WAIT_SECONDS) * 1_000,
    spillBytes: options.spillBytes ?? SPILL_BYTES,
    log,
    exposeErrors: options.exposeErrors ?? false,
    async lifespan() {
      if (!options.lifespan) return undefined;
      opened ??= options.lifespan();
      return (await opened).value;
    },
  };
  let http: HttpSide | undefined;
  const httpSide = (): HttpSide => {
    http ??= createHttpSide(service, introduction, options.http);
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
    fetch: (request, fetchOptions) => httpSide().fetch(request, fetchOptions),
    async listen(listenOptions = {}) {
      checkOptions(listenOptions, ["port", "host", "path", "tls", "unixSocket"], "listen(options)");
      await service.lifespan();
      const side = httpSide();
      const listening = await listen((request) => side.fetch(request), {
        ...listenOptions,
        allowedHosts: options.http?.allowedHosts,
      });
      const close = (graceMs?: number): Promise<void> => {
        closers.delete(close);
        return listening.close(graceMs);
      };
      closers.add(close);
      return { ...listening, close };
    },
    async stdio() {
      await service.lifespan();
      const stdio = openStdio((era) => createProtocol(service, introduction, era), log);
      closers.add(stdio.close);
      await stdio.done;
      await stdio.close();
      closers.delete(stdio.close);
    },
    completeElicitation: (id, completion = {}) => completePage(store, id, service.questionTtlMs, completion),
    run: (meta, runOptions) => runIfEntry(server, meta, runOptions),
    close() {
      closing ??= (async () => {
        await http?.close();
        await Promise.allSettled([...closers].map((close) => close()));
        const value = await opened?.catch(() => undefined); // it failed to open: whoever asked was told
        await value?.close?.();
        if (!options.store) await store.close();
      })();
      return closing;
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
  return server;
}
