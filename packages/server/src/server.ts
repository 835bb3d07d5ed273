import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { type OutcomeStore, openMemory } from "@tenon/store";
import type { TokenVerifier } from "./auth/types.ts";
import type { VisibleTags } from "./definition/access.ts";
import { type ArgumentLimits, READING_RULES, type UnknownArguments } from "./definition/arguments.ts";
import { type CacheOptions, createCacheHints } from "./definition/cache.ts";
import { createDefining, type Defining, registerHome } from "./definition/defining.ts";
import { createRegistry } from "./definition/registry.ts";
import { MAX_RESULT_BYTES } from "./definition/result.ts";
import { createScopes, type ScopeHierarchy } from "./definition/scopes.ts";
import { checkTimeoutMs, HANDLER_TIMEOUT_MS } from "./definition/time-limit.ts";
import type { Service } from "./dispatch/dispatch.ts";
import { createBus } from "./dispatch/notify.ts";
import { createPaging } from "./dispatch/paging.ts";
import { createLastingProtocol, type Introduction, identityOf } from "./dispatch/protocol.ts";
import { createExtensions } from "./extension/extensions.ts";
import { createWorkers, type WorkerPoolOptions } from "./handler/workers.ts";
import type { HttpOptions, HttpSide } from "./http/http.ts";
import { runIfEntry } from "./http/run.ts";
import { createLog, type LogEntry, type LogLevel, logLevelOf } from "./log.ts";
import type { Middleware } from "./middleware/onion.ts";
import { completePage } from "./question/pages.ts";
import { createSeal } from "./question/seal.ts";
import { openStdio } from "./stdio/stdio.ts";
import type { TenonServer } from "./tenon-server.ts";

/** What a server is called, and everything that is not its default. */
export interface ServerOptions<Lifespan = undefined> {
  /** Machine name, for example `"orders"`. */
  name: string;
  /** Version of the server, for people and logs. */
  version: string;
  /** Name for people. Clients show `name` where it is left out. */
  title?: string;
  /** For the model: how the tools of this server work together. */
  instructions?: string;
  /**
   * Opens what handlers need (pools, clients) once, before the first request; `close` runs last. Handlers reach the value as
   * `ctx.lifespan`. When it throws, the request fails and the next one tries again.
   */
  lifespan?: () => Promise<{ value: Lifespan; close?: () => void | Promise<void> }>;
  /** Shows callers the messages of unexpected errors. For development only. Default false. */
  exposeErrors?: boolean;
  /**
   * Keys that seal a waiting question's state, newest first, 32 bytes each as base64url; `openStateKeys(file)` keeps them in a
   * file. Default: `TENON_STATE_KEYS` (comma-separated), else a key that lives as long as the process.
   */
  stateKeys?: readonly string[];
  /** Milliseconds a question may wait for its answer. Default 7 days. */
  questionTtlMs?: number;
  /** Milliseconds the answer to `ctx.elicitUrl` waits for the page's report before the person is asked again. Default 20,000. */
  pageWaitMs?: number;
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
  /** Who may reach it over HTTP, and how much; see `listen` for where. */
  http?: HttpOptions;
  /**
   * Which tokens a request over HTTP must bring one of: `jwt`, `introspection` or `anyOf` of `@tenon/server/auth`. On stdio nothing
   * is asked for: the process that started the server is trusted as its user is. Default: everybody may come in.
   */
  auth?: TokenVerifier;
  /**
   * Scopes that include others: `{ "orders:refund": ["orders:read"] }`. What is implied may imply more. It counts for every scope
   * this server asks for. Default: a granted `orders:*` covers what begins with `orders:`, and nothing else.
   */
  scopeHierarchy?: ScopeHierarchy;
  /** Arguments a tool's schema does not name: left out (`"strip"`, the default) or refused with "did you mean". */
  unknownArguments?: UnknownArguments;
  /** Limits of one call's arguments. */
  argumentLimits?: Partial<ArgumentLimits>;
  /**
   * Milliseconds one run of a handler may take unless its definition says otherwise; a question ends a run, so what a person
   * takes to answer does not count. Then `ctx.signal` fires and the caller gets an error. Default 600,000: ten minutes.
   */
  timeoutMs?: number;
  /** Bytes of one result; a larger one is an error that says so. Default 8 MiB. */
  maxResultBytes?: number;
  /** Tags this caller may see: a definition with tags is hidden from callers without one of them. Default: tags hide nothing. */
  visibleTags?: VisibleTags;
  /** Threads for tools with `worker`. */
  workers?: WorkerPoolOptions;
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
  "questionTtlMs",
  "pageWaitMs",
  "store",
  "replicas",
  "spillBytes",
  "logLevel",
  "logSink",
  "http",
  "auth",
  "scopeHierarchy",
  "unknownArguments",
  "argumentLimits",
  "timeoutMs",
  "maxResultBytes",
  "visibleTags",
  "workers",
  "cache",
  "pageSize",
] as const satisfies ReadonlyArray<keyof ServerOptions>;

const HTTP_OPTIONS = [
  "allowedHosts",
  "allowedOrigins",
  "trustedProxies",
  "maxBodyBytes",
  "requestTimeoutMs",
  "sessions",
] as const satisfies ReadonlyArray<keyof HttpOptions>;

const WEEK_MS = 7 * 24 * 60 * 60 * 1_000;
const PAGE_WAIT_MS = 20_000;
const SPILL_BYTES = 64 * 1024;

/** A question answered at another replica must be readable there, and must not take effect there a second time. */
function checkReplicas(replicas: boolean | number, store: OutcomeStore | undefined, keys: readonly string[]): void {
  if (replicas === false || (typeof replicas === "number" && replicas <= 1)) return;
  const missing = [
    ...(store?.shared ? [] : ["a store they share, such as openPostgres({ url }).outcomes"]),
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

/** @throws ConfigError `code: "auth"` for what is no token verifier */
function checkAuth(auth: unknown): void {
  if (auth === undefined || (isRecord(auth) && typeof auth.verify === "function" && Array.isArray(auth.issuers)))
    return;
  throw new ConfigError(
    "createServer: auth must be a token verifier, such as jwt({ issuer, audience, jwksUrl }) of @tenon/server/auth",
    { code: "auth" },
  );
}

/**
 * Makes a server that speaks both protocol eras from one set of definitions.
 * @throws ConfigError for unknown options or a malformed state key
 * @example const server = createServer({ name: "math", version: "1.0.0" })
 */
export function createServer<Lifespan = undefined>(options: ServerOptions<Lifespan>): TenonServer<Lifespan> {
  checkOptions(options, OPTIONS, "createServer(options)");
  checkTimeoutMs(options.timeoutMs, "createServer(options)");
  checkOptions(options.http ?? {}, HTTP_OPTIONS, "createServer({ http })");
  checkOptions(options.http?.sessions ?? {}, ["max", "idleTimeoutMs"], "createServer({ http: { sessions } })");
  checkOptions(options.argumentLimits ?? {}, ["maxDepth", "maxArrayElements"], "createServer({ argumentLimits })");
  checkAuth(options.auth);
  const admission = { verifier: options.auth, scopes: createScopes(options.scopeHierarchy) };
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
  const store = options.store ?? openMemory().outcomes;
  const questionTtlMs = options.questionTtlMs ?? WEEK_MS;
  let opened: Promise<{ value: Lifespan; close?: () => void | Promise<void> }> | undefined;
  const limits = { ...READING_RULES.limits, ...options.argumentLimits };
  const bus = createBus(log);
  const cacheHints = createCacheHints(options.cache);
  const service: Service = {
    registry,
    extensions: createExtensions(log, options.exposeErrors ?? false),
    middleware,
    reading: { unknownArguments: options.unknownArguments ?? READING_RULES.unknownArguments, limits },
    timeoutMs: options.timeoutMs ?? HANDLER_TIMEOUT_MS,
    namePrefix: "",
    maxResultBytes: options.maxResultBytes ?? MAX_RESULT_BYTES,
    seal: createSeal(stateKeys, questionTtlMs),
    store,
    questionTtlMs,
    pageWaitMs: options.pageWaitMs ?? PAGE_WAIT_MS,
    spillBytes: options.spillBytes ?? SPILL_BYTES,
    authenticated: options.auth !== undefined,
    cacheHints,
    // the newest key of the ring: replicas that share it accept each other's cursors
    paging: createPaging(cacheHints, options.pageSize, stateKeys[0]),
    notify: bus.notify,
    log,
    exposeErrors: options.exposeErrors ?? false,
    async lifespan() {
      if (!options.lifespan) return undefined;
      opened ??= options.lifespan().catch((error: unknown) => {
        opened = undefined; // what it opens may be there for the next request
        throw error;
      });
      return (await opened).value;
    },
  };
  let http: Promise<HttpSide> | undefined;
  // imported when first used: a server on stdio starts without any of it
  const httpSide = (): Promise<HttpSide> => {
    http ??= import("./http/http.ts").then(({ createHttpSide }) =>
      createHttpSide(service, introduction, bus, options.http, admission),
    );
    return http;
  };
  const closers = new Set<() => Promise<void>>();
  let closing: Promise<void> | undefined;

  const CHANGED = {
    tool: bus.notify.toolsChanged,
    resource: bus.notify.resourcesChanged,
    prompt: bus.notify.promptsChanged,
  };
  registry.onChange(({ kind }) => CHANGED[kind]());
  const { defining, closeMounted } = createDefining<Lifespan>({ home: service, middleware, workers }, () => server);
  const server: TenonServer<Lifespan> = {
    name: options.name,
    // `self` makes these return the server
    ...(defining as Pick<TenonServer<Lifespan>, keyof Defining<Lifespan>>),
    extension(extension) {
      service.extensions.add(extension);
      return server;
    },
    notify: bus.notify,
    // nothing but these: what else the HTTP side may be told is between it and `listen`
    fetch: async (request, { caller, remoteAddress } = {}) =>
      (await httpSide()).fetch(request, { ...(caller && { caller }), remoteAddress }),
    async listen(listenOptions = {}) {
      checkOptions(listenOptions, ["port", "host", "path", "tls", "unixSocket"], "listen(options)");
      await service.lifespan();
      const [side, { clearTextWarning, listen }, { createFastListener }] = await Promise.all([
        httpSide(),
        import("./http/listen.ts"),
        import("./fast/listener.ts"),
      ]);
      const warning = options.auth && clearTextWarning({ ...options.http, ...listenOptions }, options.auth.resource);
      if (warning !== undefined) log("warning", warning);
      const identity = identityOf(introduction);
      const listening = await listen(
        side,
        { ...options.http, ...listenOptions },
        (path, otherwise) => createFastListener({ service, side, identity, path, otherwise }),
        log,
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
      const stdio = openStdio(
        (era) => createLastingProtocol(service, introduction, era, bus),
        service,
        identityOf(introduction),
      );
      closers.add(stdio.close);
      await stdio.done;
      await stdio.close();
      closers.delete(stdio.close);
    },
    completeElicitation: (id, completion = {}) =>
      completePage({ store, ttlMs: service.questionTtlMs, issuers: options.auth?.issuers ?? [] }, id, completion),
    run: (meta, runOptions) => runIfEntry(server, meta, runOptions),
    close() {
      closing ??= (async () => {
        // listeners stop accepting at once; what they still answer and the streams end meanwhile
        const side = await http?.catch(() => undefined); // it failed to open: whoever asked was told
        await Promise.allSettled([...[...closers].map((close) => close()), side?.close()]);
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
