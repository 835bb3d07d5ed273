import { ConfigError, isRecord, type TelemetryOptions } from "@tenon/core";
import {
  anything,
  callable,
  checkOptions,
  checkTelemetry,
  flag,
  milliseconds,
  type OptionCheck,
  type OptionChecks,
  oneOf,
  positive,
  refuseOption,
  text,
  zeroOrMore,
} from "@tenon/core/internal";
import type { Stores } from "@tenon/store";
import type { TokenVerifier } from "./auth/types.ts";
import { type ContractOptions, contractOption } from "./contract/options.ts";
import type { VisibleTags } from "./definition/access.ts";
import { ARGUMENT_LIMITS, type ArgumentLimits, type UnknownArguments } from "./definition/arguments.ts";
import type { CacheOptions } from "./definition/cache.ts";
import type { AnySchema } from "./definition/json-schema.ts";
import type { ScopeHierarchy } from "./definition/scopes.ts";
import { checkTimeoutMs } from "./definition/time-limit.ts";
import type { WorkerPoolOptions } from "./handler/workers.ts";
import type { HttpOptions } from "./http/http.ts";
import { LEVELS, type LogEntry, type LogLevel } from "./log.ts";
import { TASKS_OPTIONS, type TasksOptions } from "./task/options.ts";

/** What `createServer` takes. */
export interface ServerOptions<Lifespan = undefined, S extends AnySchema = AnySchema> {
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
   * Everything that outlives a request, as `openSqlite`, `openPostgres` or `openMemory` of `@tenon/store` open it: which questions
   * were answered and with what outcome, idempotent calls, tasks, and word of changes between processes. Default: in memory, bounded,
   * for this process. Who opened it closes it.
   */
  store?: Stores;
  /** How tools with `task` are run and kept. */
  tasks?: TasksOptions;
  /** Whether, or how many, other processes serve the same: needs a shared `store` and the same `stateKeys`. Default false. */
  replicas?: boolean | number;
  /** Bytes of a call's journal up to which it travels with the client; larger ones go to the store. Default 64 KiB. */
  spillBytes?: number;
  /** Least severe level of the server's own log. Default: `TENON_LOG_LEVEL`, else `info`. */
  logLevel?: LogLevel;
  /** Receives the server's own log instead of stderr. */
  logSink?: (entry: LogEntry) => void;
  /** What traces may tell of requests. Default: names, times and how they ended. */
  telemetry?: TelemetryOptions;
  /** Who may reach it over HTTP, and how much; see `listen` for where. */
  http?: HttpOptions;
  /**
   * Which tokens a request over HTTP must bring one of: `jwt`, `introspection` or `anyOf` of `@tenon/server/auth`. On stdio nothing
   * is asked for: the process that started the server is trusted as its user is. Default: everybody may come in.
   */
  auth?: TokenVerifier;
  /**
   * The context contract: which context every call must carry, checked before anything of yours runs and announced with a signature.
   * Left out: none is asked for. Of a server that is mounted in another, the other's contract counts.
   */
  contract?: ContractOptions<S>;
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

const tokenVerifier: OptionCheck = (auth) => {
  if (isRecord(auth) && typeof auth.verify === "function" && Array.isArray(auth.issuers)) return;
  throw new ConfigError(
    "createServer: auth must be a token verifier, such as jwt({ issuer, audience, jwksUrl }) of @tenon/server/auth",
    { code: "auth" },
  );
};

const stores: OptionCheck = (store) => {
  if (isRecord(store) && ["outcomes", "tasks", "events"].every((part) => isRecord(store[part]))) return;
  throw new ConfigError(
    "createServer: store must be all that openStores, openMemory, openSqlite or openPostgres of @tenon/store opened, not a part of it",
    { code: "store" },
  );
};

/** What stands for an origin must be one, as browsers write it; whatever holds no `://` is a host name. */
const pages: OptionCheck = (given, where) => {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  const wrong = list.find((one) => {
    if (typeof one !== "string") return true;
    return one.includes("://") && !(URL.canParse(one) && new URL(one).origin === one.toLowerCase());
  });
  if (Array.isArray(given) && wrong === undefined) return;
  const shown = JSON.stringify(wrong ?? given);
  refuseOption(`${where} must be a list of origins ("https://desk.example") and host names, got ${shown}`);
};

/** A table of its own for options that are an object. */
const within =
  <Options>(checks: OptionChecks<Options>, where: string): OptionCheck =>
  (given) =>
    checkOptions(given as object, checks as Readonly<Record<string, OptionCheck>>, where); // it refuses what is none

const OPTIONS: OptionChecks<ServerOptions> = {
  name: text,
  version: text,
  title: text,
  instructions: text,
  lifespan: callable,
  exposeErrors: flag,
  // where they are made use of: with what they mean together
  stateKeys: anything,
  store: stores,
  replicas: anything,
  scopeHierarchy: anything,
  cache: anything,
  workers: anything,
  pageSize: anything,
  questionTtlMs: positive("milliseconds"),
  pageWaitMs: zeroOrMore("milliseconds"),
  spillBytes: zeroOrMore("bytes"),
  logLevel: oneOf(...LEVELS),
  logSink: callable,
  telemetry: checkTelemetry,
  http: within<HttpOptions>(
    {
      allowedHosts: anything,
      allowedOrigins: pages,
      trustedProxies: anything,
      maxBodyBytes: positive("bytes"),
      requestTimeoutMs: milliseconds,
      sessions: anything,
    },
    "createServer({ http })",
  ),
  auth: tokenVerifier,
  contract: contractOption,
  unknownArguments: oneOf("strip", "reject"),
  argumentLimits: within<ArgumentLimits>(ARGUMENT_LIMITS, "createServer({ argumentLimits })"),
  tasks: within<TasksOptions>(TASKS_OPTIONS, "createServer({ tasks })"),
  timeoutMs: (ms) => checkTimeoutMs(ms as number, "createServer(options)"), // it refuses what is none
  maxResultBytes: positive("bytes"),
  visibleTags: callable,
};

/**
 * Refuses what `createServer` would not understand.
 * @throws ConfigError `unknown_option` with "did you mean", `invalid_option`, `auth` or `time_limit`
 */
export function checkServerOptions(options: Pick<ServerOptions, "name" | "version">): void {
  const where = "createServer(options)";
  checkOptions(options, OPTIONS, where);
  // what is left out is not asked about above
  text(options.name, `${where}.name`);
  text(options.version, `${where}.version`);
}

/** A question answered at another replica must be readable there, and must not take effect there a second time. */
export function checkReplicas(replicas: boolean | number, store: Stores | undefined, keys: readonly string[]): void {
  if (replicas === false || (typeof replicas === "number" && replicas <= 1)) return;
  const missing = [
    ...(store?.outcomes.shared ? [] : ["a store they share, such as openPostgres({ url })"]),
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
