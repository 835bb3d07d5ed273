import { ConfigError, checkOptions } from "@tenon/core";
import { createMemoryStore, type OutcomeStore } from "@tenon/store";
import type { VisibleTags } from "./access.ts";
import { type ArgumentLimits, READING_RULES, type UnknownArguments } from "./arguments.ts";
import { createDefining, type Defining, registerHome } from "./defining.ts";
import type { Service } from "./dispatch.ts";
import { createExtensions, type Extension } from "./extensions.ts";
import { createHttpSide, type FetchOptions, type HttpOptions, type HttpSide } from "./http.ts";
import { type Listening, type ListenOptions, listen } from "./listen.ts";
import { createLog, type LogEntry, type LogLevel, logLevelOf } from "./log.ts";
import type { Middleware } from "./middleware/onion.ts";
import { type CompletionOptions, completePage } from "./pages.ts";
import { createProtocol, type Introduction } from "./protocol.ts";
import { createRegistry } from "./registry.ts";
import { MAX_RESULT_BYTES } from "./result.ts";
import { type RunOptions, runIfEntry } from "./run.ts";
import { createSeal } from "./seal.ts";
import { openStdio } from "./stdio.ts";
import { createWorkers, type WorkerPoolOptions } from "./workers.ts";

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
  /** Arguments a tool's schema does not name: left out (`"strip"`, the default) or refused with "did you mean". */
  unknownArguments?: UnknownArguments;
  /** Limits of one call's arguments. */
  argumentLimits?: Partial<ArgumentLimits>;
  /** Bytes of one result; a larger one is an error that says so. Default 8 MiB. */
  maxResultBytes?: number;
  /** Tags this caller may see: a definition with tags is hidden from callers without one of them. Default: tags hide nothing. */
  visibleTags?: VisibleTags;
  /** Threads for tools with `worker`. */
  workers?: WorkerPoolOptions;
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
  "unknownArguments",
  "argumentLimits",
  "maxResultBytes",
  "visibleTags",
  "workers",
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
export interface TenonServer<Lifespan = undefined> extends Defining<Lifespan> {
  readonly name: string;
  /**
   * Offers an extension of the protocol: its capability is advertised and its methods are answered on every transport.
   * @throws ConfigError for a malformed or taken id, or a method that is taken or belongs to the protocol
   * @example server.extension({ id: "com.example/audit", methods: { "audit/list": { handler: () => ({ entries: [] }) } } })
   */
  extension(extension: Extension): this;
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
  const registry = createRegistry(options.visibleTags);
  const middleware: Middleware[] = [];
  const log = createLog(options.name, options.logLevel ?? logLevelOf(process.env.TENON_LOG_LEVEL), options.logSink);
  const workers = createWorkers(log, options.workers);
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
  const limits = { ...READING_RULES.limits, ...options.argumentLimits };
  const service: Service = {
    registry,
    extensions: createExtensions(log, options.exposeErrors ?? false),
    middleware,
    reading: { unknownArguments: options.unknownArguments ?? READING_RULES.unknownArguments, limits },
    namePrefix: "",
    maxResultBytes: options.maxResultBytes ?? MAX_RESULT_BYTES,
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

  const { defining, closeMounted } = createDefining<Lifespan>({ home: service, middleware, workers }, () => server);
  const server: TenonServer<Lifespan> = {
    name: options.name,
    // `self` makes these return the server
    ...(defining as Pick<TenonServer<Lifespan>, keyof Defining<Lifespan>>),
    extension(extension) {
      service.extensions.add(extension);
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
        await workers.close();
        await closeMounted();
        const value = await opened?.catch(() => undefined); // it failed to open: whoever asked was told
        await value?.close?.();
        if (!options.store) await store.close();
      })();
      return closing;
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
  registerHome(server, service);
  return server;
}
