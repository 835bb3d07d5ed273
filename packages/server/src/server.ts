import { ConfigError } from "@tenon/core";
import { checkOptions, contentOf } from "@tenon/core/internal";
import { openMemory } from "@tenon/store";
import { checkCaller } from "./auth/caller.ts";
import type { Contract } from "./contract/contract.ts";
import { type ContextOf, readContractOptions } from "./contract/options.ts";
import { READING_RULES } from "./definition/arguments.ts";
import { createCacheHints } from "./definition/cache.ts";
import { createDefining, type Defining, registerHome } from "./definition/defining.ts";
import type { AnySchema } from "./definition/json-schema.ts";
import { createRegistry } from "./definition/registry.ts";
import { MAX_RESULT_BYTES } from "./definition/result.ts";
import { createScopes } from "./definition/scopes.ts";
import { HANDLER_TIMEOUT_MS } from "./definition/time-limit.ts";
import type { Service } from "./dispatch/dispatch.ts";
import { createBus } from "./dispatch/notify.ts";
import { createPaging } from "./dispatch/paging.ts";
import { createLastingProtocol, type Introduction, identityOf } from "./dispatch/protocol.ts";
import { createExtensions } from "./extension/extensions.ts";
import { createGauges } from "./gauges.ts";
import { timelyStore, timelyTasks, within } from "./handler/within.ts";
import { createWorkers } from "./handler/workers.ts";
import type { AdminListening } from "./http/admin.ts";
import type { HttpSide } from "./http/http.ts";
import type { Listening, ListenOptions } from "./http/listen.ts";
import { runIfEntry } from "./http/run.ts";
import { createLog, logLevelOf } from "./log.ts";
import type { Middleware } from "./middleware/onion.ts";
import { checkReplicas, checkServerOptions, type ServerOptions } from "./options.ts";
import { completePage } from "./question/pages.ts";
import { createSeal } from "./question/seal.ts";
import { openStdio } from "./stdio/stdio.ts";
import { createTasks } from "./task/tasks.ts";
import type { TenonServer } from "./tenon-server.ts";

const WEEK_MS = 7 * 24 * 60 * 60 * 1_000;
const PAGE_WAIT_MS = 20_000;
const SPILL_BYTES = 64 * 1024;

/**
 * Makes a server that speaks both protocol eras from one set of definitions.
 * @throws ConfigError for unknown options or a malformed state key
 * @example const server = createServer({ name: "math", version: "1.0.0" })
 */
export function createServer<Lifespan = undefined, S extends AnySchema = AnySchema>(
  options: ServerOptions<Lifespan, S>,
): TenonServer<Lifespan, ContextOf<S>> {
  checkServerOptions(options);
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
  const kept = options.store ?? openMemory();
  const store = options.store ? timelyStore(kept.outcomes) : kept.outcomes;
  const questionTtlMs = options.questionTtlMs ?? WEEK_MS;
  let ready: { value: Lifespan } | undefined;
  let opened: Promise<{ value: Lifespan; close?: () => void | Promise<void> }> | undefined;
  const limits = { ...READING_RULES.limits, ...options.argumentLimits };
  const bus = createBus(log, options.store && { bus: options.store.events, server: options.name });
  const tasks = createTasks(() => service, options.store ? timelyTasks(kept.tasks) : kept.tasks, options.tasks);
  const cacheHints = createCacheHints(options.cache);
  const settings = options.contract && readContractOptions(options.contract);
  let contract: Contract | undefined;
  let contracting: Promise<void> | undefined;
  const service: Service = {
    serverName: options.name,
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
    tasks,
    // opened before the first request
    get contract() {
      return contract;
    },
    content: contentOf(options.telemetry),
    log,
    exposeErrors: options.exposeErrors ?? false,
    async lifespan() {
      if (!options.lifespan) return undefined;
      if (ready) return ready.value;
      opened ??= options.lifespan().catch((error: unknown) => {
        opened = undefined; // what it opens may be there for the next request
        throw error;
      });
      const ms = service.timeoutMs;
      const late = (): Error =>
        new ConfigError(`createServer({ lifespan }) has not opened within ${ms} ms; give what it waits for an end`, {
          code: "lifespan",
        });
      ready ??= await within(ms, opened, late);
      return ready.value;
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
  /** Opens the contract, and refuses one that this server does not keep; most servers have none and wait for nothing. */
  const agree = (): Promise<void> | undefined => {
    if (!settings || contract) return undefined;
    contracting ??= import("./contract/open.ts")
      .then(({ openOwnContract }) => {
        contract = openOwnContract(settings, service, { verifier: options.auth, contexts: kept.contexts });
      })
      .catch((error: unknown) => {
        contracting = undefined; // what is missing may be defined by the next time
        throw error;
      });
    return contracting;
  };
  const closers = new Set<() => Promise<void>>();
  const admins: AdminListening[] = [];
  let closing: Promise<void> | undefined;

  const CHANGED = {
    tool: bus.notify.toolsChanged,
    resource: bus.notify.resourcesChanged,
    prompt: bus.notify.promptsChanged,
  };
  registry.onChange(({ kind }) => CHANGED[kind]());
  tasks.watchTools();
  const { startGauges, stopGauges } = createGauges(options.name, tasks, async () => (await http)?.sessions.size ?? 0);
  /** What begins with the first way to serve. */
  const serve = (): void => {
    startGauges();
    bus.hear();
    tasks.serve();
  };
  /** Tells registries where it listens. @returns takes it out of them */
  const registerIt = async (listenOptions: ListenOptions, listening: Listening): Promise<() => Promise<void>> => {
    if (listenOptions.register === undefined) return async () => {};
    const [{ registerListening, registrarsOf }, { registeredCapabilities }] = await Promise.all([
      import("./register/listening.ts"),
      import("./contract/capabilities.ts"),
    ]);
    const all = await registerListening(registrarsOf(listenOptions), listening, {
      name: options.name,
      version: options.version,
      capabilities: () => registeredCapabilities(service),
      hasContract: contract !== undefined,
      log,
    });
    return async () => void (await Promise.all(all.map((one) => one.close())));
  };
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
    fetch: async (request, { caller, remoteAddress } = {}) => {
      if (caller) checkCaller(caller);
      const agreeing = agree();
      if (agreeing) await agreeing;
      serve();
      return (await httpSide()).fetch(request, { ...(caller && { caller }), remoteAddress });
    },
    async listen(listenOptions = {}) {
      checkOptions(listenOptions, ["port", "host", "path", "tls", "unixSocket", "register"], "listen(options)");
      await agree();
      await service.lifespan();
      const [side, { clearTextWarning, listen }, { createFastListener }, { noAuthWarning }] = await Promise.all([
        httpSide(),
        import("./http/listen.ts"),
        import("./fast/listener.ts"),
        import("./http/scope-check.ts"),
      ]);
      const warning = options.auth
        ? clearTextWarning({ ...options.http, ...listenOptions }, options.auth.resource)
        : noAuthWarning(registry);
      if (warning !== undefined) log("warning", warning);
      const identity = identityOf(introduction);
      const listening = await listen(
        side,
        { ...options.http, ...listenOptions },
        (path, otherwise) => createFastListener({ service, side, identity, path, otherwise }),
        log,
      );
      serve();
      const unregister = await registerIt(listenOptions, listening).catch(async (error: unknown) => {
        await listening.close(0);
        throw error;
      });
      const close = async (graceMs?: number): Promise<void> => {
        closers.delete(close);
        await unregister(); // first: nobody is sent here any more
        return listening.close(graceMs);
      };
      closers.add(close);
      return { ...listening, close };
    },
    async admin(adminOptions) {
      startGauges();
      const { openAdmin } = await import("./http/admin.ts");
      const admin = await openAdmin(adminOptions, {
        lifespan: () => service.lifespan(),
        store: () => store.getBlob("ready"), // nothing has this id: that the store answers is what counts
        isClosing: () => closing !== undefined,
        log,
      });
      admins.push(admin);
      return admin;
    },
    async stdio() {
      await agree();
      await service.lifespan();
      const stdio = openStdio(
        (era) => createLastingProtocol(service, introduction, era, bus),
        service,
        identityOf(introduction),
      );
      serve();
      closers.add(stdio.close);
      await stdio.done;
      await stdio.close();
      closers.delete(stdio.close);
    },
    async work(workOptions = {}) {
      await agree();
      startGauges();
      return tasks.work(workOptions);
    },
    completeElicitation: (id, completion = {}) =>
      completePage({ store, ttlMs: service.questionTtlMs, issuers: options.auth?.issuers ?? [] }, id, completion),
    run: (meta, runOptions) => runIfEntry(server, meta, runOptions),
    close() {
      closing ??= (async () => {
        stopGauges();
        // listeners stop accepting at once; what they still answer and the streams end meanwhile
        const side = await http?.catch(() => undefined); // it failed to open: whoever asked was told
        // running tasks are handed back meanwhile
        await Promise.allSettled([...[...closers].map((close) => close()), side?.close(), tasks.close()]);
        await contract?.close();
        bus.close();
        await workers.close();
        await closeMounted();
        const value = await opened?.catch(() => undefined); // it failed to open: whoever asked was told
        await value?.close?.();
        if (!options.store) await kept.close();
        // to the end it says that this server is closing
        await Promise.all(admins.map((admin) => admin.close()));
      })();
      return closing;
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
  registerHome(server, service);
  // every context is held against that schema before a handler sees it
  return server as TenonServer<Lifespan, ContextOf<S>>;
}
