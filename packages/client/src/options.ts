import { isLoopback, isRecord } from "@tenon/core";
import {
  anything,
  callable,
  checkOptions,
  checkTelemetry,
  flag,
  kindOf,
  LOG_LEVELS,
  milliseconds,
  type OptionCheck,
  type OptionChecks,
  oneOf,
  positive,
  text,
  refuseOption as wrong,
} from "@tenon/core/internal";
import { checkSelection } from "./catalog/filters.ts";
import { checkSandbox } from "./connection/launch.ts";
import { checkContract } from "./contract/options.ts";
import { expectList, expectText } from "./expect.ts";
import { factoryOf } from "./interceptors/general.ts";
import {
  checkBreaker,
  checkCredentials,
  checkOrigins,
  checkRegistry,
  checkReplicas,
  checkRouting,
  checkService,
} from "./routing/options.ts";
import { pinOptions } from "./trust/gate.ts";
import { checkTrust } from "./trust/options.ts";
import type { CallOptions, ReadOptions } from "./types/calls.ts";
import type { ClientOptions } from "./types/client.ts";
import { EVENTS } from "./types/events.ts";
import type {
  HttpServerConfig,
  ReplicasServerConfig,
  ServerConfig,
  ServiceServerConfig,
  StdioServerConfig,
  TransportServerConfig,
} from "./types/servers.ts";
import type { FollowOptions, ResumeOptions, StartOptions, TaskRequestOptions } from "./types/tasks.ts";

/** The options of a server that are the same whatever it is reached by. */
const COMMON = {
  required: flag,
  connectTimeoutMs: milliseconds,
  timeoutMs: milliseconds,
  contract: checkContract,
  // with what they mean together, below
  include: anything,
  exclude: anything,
  expectHosts: anything,
  grants: anything,
} as const;
const PEM_CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/;

function filled(value: unknown, where: string): void {
  if (typeof value !== "string" || value === "") wrong(`${where} must be a text`);
}

function texts(value: unknown, where: string): void {
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) {
    wrong(`${where} must be a list of texts`);
  }
}

function checkTexts(value: unknown, where: string): void {
  if (!isRecord(value)) wrong(`${where} must be an object of texts`);
  for (const [key, item] of Object.entries(value)) {
    // the type only: what stands in headers and variables may be secret
    if (typeof item !== "string") wrong(`${where}.${key} must be a text, got ${item === null ? "null" : typeof item}`);
  }
}

/** Refuses what is no address of a server. */
export function checkUrl(url: unknown, where: string): void {
  const parsed = typeof url === "string" && URL.canParse(url) ? new URL(url) : undefined;
  if (parsed && ["http:", "https:"].includes(parsed.protocol)) return;
  wrong(`${where} must be an http or https address such as http://127.0.0.1:8030/mcp, got ${JSON.stringify(url)}`);
}

/** Refuses certificates that are none. Anything but PEM is passed over by TLS without a word, and every certificate then refused. */
export function checkAuthorities(ca: unknown, where: string): void {
  const authorities: unknown[] = [ca].flat();
  if (!authorities.every((one) => typeof one === "string")) wrong(`${where} must be a text`);
  if (authorities.every((one) => PEM_CERTIFICATE.test(String(one)))) return;
  wrong(
    `${where} must be certificates as PEM text (-----BEGIN CERTIFICATE-----). The path of a file is not read: give ` +
      'what is in it, readFileSync(path, "utf8")',
  );
}

type OverHttp = HttpServerConfig | ReplicasServerConfig | ServiceServerConfig;

function checkAuth(config: OverHttp, where: string): void {
  const { auth, headers } = config;
  if (auth === undefined) return;
  if (!isRecord(auth) || typeof auth.open !== "function") {
    wrong(`${where}.auth must be made by a function of @tenon/client/auth, such as bearer(token) or oauth()`);
  }
  if (Object.keys(headers ?? {}).some((name) => name.toLowerCase() === "authorization")) {
    wrong(`${where} has auth and an Authorization header; give one of the two`);
  }
  if (!("url" in config)) return;
  const { protocol, hostname } = new URL(config.url);
  if (protocol === "http:" && !isLoopback(hostname) && config.socketPath === undefined) {
    wrong(`${where}.auth would send a token unencrypted to ${hostname}; use https, or a tunnel to this machine`);
  }
}

/** The options of a server over HTTP, wherever it is. */
const OVER_HTTP = {
  headers: checkTexts,
  auth: anything, // with the address, below
  ca: checkAuthorities,
  maxResponseBytes: positive("bytes"),
  breaker: checkBreaker,
  ...COMMON,
} as const;

/** The options a configured server may have and what they may be, by what it is reached by. */
export const SERVER_OPTIONS = {
  url: { url: checkUrl, socketPath: text, ...OVER_HTTP } satisfies OptionChecks<HttpServerConfig>,
  replicas: {
    replicas: checkReplicas(checkUrl),
    resource: checkUrl,
    ...OVER_HTTP,
  } satisfies OptionChecks<ReplicasServerConfig>,
  service: {
    service: checkService,
    origins: checkOrigins,
    resource: checkUrl,
    ...OVER_HTTP,
  } satisfies OptionChecks<ServiceServerConfig>,
  command: {
    command: filled,
    args: texts,
    env: checkTexts,
    cwd: text,
    sandbox: checkSandbox,
    maxResponseBytes: positive("bytes"),
    concurrency: positive("calls"),
    pool: positive("processes"),
    ...COMMON,
  } satisfies OptionChecks<StdioServerConfig>,
  transport: { transport: callable, ...COMMON } satisfies OptionChecks<TransportServerConfig>,
} as const;

/** Refuses a server's configuration that `createClient` would not understand. @throws ConfigError */
export function checkServer(value: unknown, where: string): asserts value is ServerConfig {
  const config = value as ServerConfig; // what it is, is checked here
  if (!isRecord(config)) wrong(`${where} must be an object with url, replicas, service, command or transport`);
  const given: Readonly<Record<string, unknown>> = { ...config };
  const all = Object.keys(SERVER_OPTIONS) as (keyof typeof SERVER_OPTIONS)[]; // its own keys
  const kinds = all.filter((kind) => kind in config);
  const [kind] = kinds;
  // a misspelt key is the likelier reason for a missing kind
  if (!kind) checkOptions(config, [...new Set(Object.values(SERVER_OPTIONS).flatMap(Object.keys))], where);
  if (!kind || kinds.length > 1) {
    wrong(
      `${where} must have exactly one of url, replicas, service, command and transport, got ${kinds.join(" and ") || "none"}`,
    );
  }
  const checks: Readonly<Record<string, OptionCheck>> = SERVER_OPTIONS[kind];
  checkOptions(config, checks, where);
  // undefined is no way to reach anything
  if (given[kind] === undefined) checks[kind]?.(undefined, `${where}.${kind}`);
  checkTrust(config, where);
  checkSelection(config, where);
  if ("url" in config || "replicas" in config || "service" in config) {
    checkAuth(config as OverHttp, where); // that is what these have
    checkCredentials(config as OverHttp, where);
  }
  if ("command" in config && config.pool !== undefined && config.concurrency !== undefined) {
    wrong(`${where} has pool and concurrency; a process of a pool has one call at a time, so give one of the two`);
  }
}

/** Refuses what is no list of interceptors; a factory that was not called would fail in the middle of the first call. */
const checkInterceptors: OptionCheck = (list, where) => {
  if (!Array.isArray(list)) wrong(`${where} must be a list of functions (request, next) => outcome`);
  for (const [index, one] of list.entries()) {
    const factory = factoryOf(one);
    if (factory) wrong(`${where}[${index}]: ${factory.name} is a factory; write ${factory.written}`);
    if (typeof one === "function") continue;
    wrong(`${where}[${index}] must be a function (request, next) => outcome, got ${kindOf(one)}`);
  }
};

const checkEvents: OptionCheck = (events, where) => {
  if (!isRecord(events)) wrong(`${where} must be an object of handlers`);
  checkOptions(events, EVENTS, where);
};

/** For an option that is a function or one of a few words. */
function callableOr(...words: readonly string[]): OptionCheck {
  const word = oneOf(...words);
  return (value, where) => {
    if (typeof value !== "function") word(value, where);
  };
}

/** Options that are one word of a few: a file may say them as they are. */
export const CHOICES = {
  naming: ["prefixed", "plain"],
  toolErrors: ["return", "throw"],
  logLevel: LOG_LEVELS,
} as const satisfies Partial<Record<keyof ClientOptions, readonly string[]>>;

const FOLLOW_OPTIONS: OptionChecks<FollowOptions> = {
  totalMs: milliseconds,
  outageMs: milliseconds,
  maxRounds: positive("rounds"),
};

const checkFollow: OptionCheck = (task, where) => {
  if (!isRecord(task)) wrong(`${where} must be an object such as { totalMs }, got ${kindOf(task)}`);
  checkOptions(task, FOLLOW_OPTIONS, where);
};

const CLIENT_OPTIONS: OptionChecks<ClientOptions> = {
  servers: (servers, where) => {
    if (!isRecord(servers)) wrong(`${where} must be an object of server configurations`);
    for (const [name, config] of Object.entries(servers)) {
      if (name === "") wrong(`${where} has a server without a name`);
      checkServer(config as ServerConfig, `servers.${name}`); // that it is one is what is checked
    }
  },
  interceptors: checkInterceptors,
  events: checkEvents,
  elicitation: callableOr("interrupt"),
  // where they are made ready to answer
  sampling: anything,
  roots: anything,
  naming: callableOr(...CHOICES.naming),
  toolErrors: oneOf(...CHOICES.toolErrors),
  logLevel: oneOf(...CHOICES.logLevel),
  maxResultBytes: positive("bytes"),
  routing: checkRouting,
  registry: checkRegistry,
  telemetry: checkTelemetry,
  task: checkFollow,
  pin: (pin) => void pinOptions(pin as ClientOptions["pin"]), // it refuses what is none
  onFirstStart: (ask, where) => {
    if (ask !== false) callable(ask, where);
  },
  info: anything,
};

/**
 * Refuses what `createClient` would not understand.
 * @throws ConfigError `unknown_option` with "did you mean", or `invalid_option`
 */
export function checkClientOptions<Options extends object>(
  options: Options & Pick<ClientOptions, "servers" | "registry">,
): void {
  const where = "createClient(options)";
  checkOptions(options, CLIENT_OPTIONS, where);
  if (options.servers === undefined) wrong(`${where}.servers must be an object of server configurations`);
  const service = Object.entries(options.servers).find(([, config]) => "service" in config)?.[0];
  if (service !== undefined && options.registry === undefined) {
    wrong(
      `servers.${service} has a service; give createClient a registry of @tenon/client/registry that knows where it is`,
    );
  }
}

const READ_OPTIONS: OptionChecks<ReadOptions> = {
  signal: anything,
  timeoutMs: milliseconds,
  totalTimeoutMs: milliseconds,
  headers: anything,
  meta: anything,
  runtime: anything,
  onProgress: anything,
  onLog: anything,
  maxResultBytes: positive("bytes"),
};
const LONGEST_CALL_ID = 200;
const callId: OptionCheck = (value, where) => {
  if (typeof value === "string" && value !== "" && value.length <= LONGEST_CALL_ID && !value.includes("\0")) return;
  const given = typeof value === "string" ? `${value.length} characters` : kindOf(value);
  wrong(`${where} must be a text of 1 to ${LONGEST_CALL_ID} characters without NUL, got ${given}`);
};
const CALL_OPTIONS: OptionChecks<CallOptions> = {
  ...READ_OPTIONS,
  callId,
  driver: anything,
  task: checkFollow,
};
const { task: _follow, driver: _driver, ...START_OPTIONS } = CALL_OPTIONS;
const RESUME_OPTIONS: OptionChecks<ResumeOptions> = { ...CALL_OPTIONS, tool: text };
const { onProgress: _onProgress, onLog: _onLog, runtime: _runtime, ...PLAIN_OPTIONS } = READ_OPTIONS;
const TASK_OPTIONS: OptionChecks<TaskRequestOptions> = { ...PLAIN_OPTIONS, tool: text };

/** Refuses a name that is no text. @throws ConfigError `invalid_option` */
export function checkName(method: "callTool" | "getPrompt", name: unknown): void {
  const kind = method === "callTool" ? "tool" : "prompt";
  expectText(name, `${method}(server, ${kind}, args): ${kind}`);
}

/** Refuses arguments of a prompt that are no object; those of a tool may come from a model, which is told. @throws ConfigError `invalid_option` */
export function checkPromptArguments(args: unknown): void {
  if (!isRecord(args)) wrong(`getPrompt(server, prompt, args): args must be an object, got ${kindOf(args)}`);
}

/** Refuses a session that is no text. @throws ConfigError `invalid_option` */
export function checkSessionId(id: unknown): void {
  expectText(id, "getContext(server, sessionId): sessionId");
}

/** Refuses what is no list of addresses. @throws ConfigError `invalid_option` */
export function checkUris(uris: unknown): void {
  if (uris === undefined) return;
  expectList(uris, "readResources(server, uris): uris");
  for (const uri of uris) expectText(uri, "readResources(server, uris): an address");
}

/** Refuses what one call would not understand. @throws ConfigError `unknown_option`, `invalid_option` */
export function checkCallOptions(options: CallOptions): void {
  checkOptions(options, CALL_OPTIONS, "callTool(…, options)");
}

/** The same for `client.tasks`. @throws ConfigError `unknown_option`, `invalid_option` */
export function checkStartOptions(options: StartOptions): void {
  checkOptions(options, START_OPTIONS, "client.tasks.start(…, options)");
}

export function checkResumeOptions(options: ResumeOptions): void {
  checkOptions(options, RESUME_OPTIONS, "client.tasks.resume(…, options)");
}

export function checkTaskOptions(options: TaskRequestOptions, method: string): void {
  checkOptions(options, TASK_OPTIONS, `client.tasks.${method}(…, options)`);
}

/** The same for reading a resource or rendering a prompt. */
export function checkReadOptions(options: ReadOptions, method: "readResources" | "getPrompt" | "getContext"): void {
  checkOptions(options, READ_OPTIONS, `${method}(…, options)`);
}
