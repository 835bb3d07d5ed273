import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions, kindOf } from "@tenon/core/internal";
import { checkSelection } from "./catalog/filters.ts";
import { checkSandbox } from "./connection/launch.ts";
import { isLoopback } from "./connection/proxy.ts";
import { expectList, expectText } from "./expect.ts";
import { factoryOf } from "./interceptors/general.ts";
import { pinOptions } from "./trust/gate.ts";
import { checkTrust } from "./trust/options.ts";
import type { CallOptions, ReadOptions } from "./types/calls.ts";
import type { ClientOptions } from "./types/client.ts";
import type { HttpServerConfig, ServerConfig } from "./types/servers.ts";

const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const EVENTS = ["onProgress", "onLog", "onElicitation", "onCatalogChanged", "onServerState", "onHandlerError"];
const COMMON = ["required", "connectTimeoutMs", "timeoutMs", "include", "exclude", "expectHosts", "grants"];
const TIMES = ["connectTimeoutMs", "timeoutMs"] as const;
const SIZES = ["maxResponseBytes", "concurrency", "pool"] as const;
/** Above this, in milliseconds, a timer ends at once instead of late: about 24 days. */
const LONGEST_MS = 2 ** 31 - 1;
/** The options a configured server may have, by what it is reached by. */
export const SERVER_KEYS = {
  url: ["url", "headers", "auth", "socketPath", "ca", "maxResponseBytes", ...COMMON],
  command: ["command", "args", "env", "cwd", "sandbox", "maxResponseBytes", "concurrency", "pool", ...COMMON],
  transport: ["transport", ...COMMON],
};

const PEM_CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/;

function wrong(message: string): never {
  throw new ConfigError(message, { code: "invalid_option" });
}

function checkTexts(value: unknown, where: string): void {
  if (value === undefined) return;
  if (!isRecord(value)) wrong(`${where} must be an object of texts`);
  for (const [key, item] of Object.entries(value)) {
    // the type only: what stands in headers and variables may be secret
    if (typeof item !== "string") wrong(`${where}.${key} must be a text, got ${item === null ? "null" : typeof item}`);
  }
}

function checkMs(value: unknown, where: string): void {
  if (value === undefined || (typeof value === "number" && value > 0 && value <= LONGEST_MS)) return;
  // Infinity and NaN have no JSON
  const got = typeof value === "number" ? String(value) : (JSON.stringify(value) ?? typeof value);
  wrong(`${where} must be a positive number of milliseconds, at most ${LONGEST_MS}, got ${got}`);
}

function checkUrl(url: unknown, where: string): void {
  const parsed = typeof url === "string" && URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !["http:", "https:"].includes(parsed.protocol)) {
    wrong(
      `${where}.url must be an http or https address such as http://127.0.0.1:8030/mcp, got ${JSON.stringify(url)}`,
    );
  }
}

function checkAuth({ auth, headers, url, socketPath }: HttpServerConfig, where: string): void {
  if (auth === undefined) return;
  if (!isRecord(auth) || typeof auth.open !== "function") {
    wrong(`${where}.auth must be made by a function of @tenon/client/auth, such as bearer(token) or oauth()`);
  }
  if (Object.keys(headers ?? {}).some((name) => name.toLowerCase() === "authorization")) {
    wrong(`${where} has auth and an Authorization header; give one of the two`);
  }
  const { protocol, hostname } = new URL(url);
  if (protocol === "http:" && !isLoopback(hostname) && socketPath === undefined) {
    wrong(`${where}.auth would send a token unencrypted to ${hostname}; use https, or a tunnel to this machine`);
  }
}

/** Refuses a server's configuration that `createClient` would not understand. @throws ConfigError */
export function checkServer(config: ServerConfig, where: string): void {
  if (!isRecord(config)) wrong(`${where} must be an object with url, command or transport`);
  const kinds = (["url", "command", "transport"] as const).filter((kind) => kind in config);
  const [kind] = kinds;
  // a misspelt key is the likelier reason for a missing kind
  if (!kind) checkOptions(config, [...new Set(Object.values(SERVER_KEYS).flat())], where);
  if (!kind || kinds.length > 1) {
    wrong(`${where} must have exactly one of url, command and transport, got ${kinds.join(" and ") || "none"}`);
  }
  checkOptions(config, SERVER_KEYS[kind], where);
  const given: Record<string, unknown> = { ...config };
  for (const key of TIMES) checkMs(given[key], `${where}.${key}`);
  for (const key of SIZES) {
    const value = given[key];
    if (value === undefined || (typeof value === "number" && value > 0)) continue;
    wrong(`${where}.${key} must be a positive number, got ${JSON.stringify(value)}`);
  }
  if (given.required !== undefined && typeof given.required !== "boolean") {
    wrong(`${where}.required must be true or false`);
  }
  checkTrust(config, where);
  checkSelection(config, where);
  if ("url" in config) {
    checkUrl(config.url, where);
    checkTexts(config.headers, `${where}.headers`);
    checkAuth(config as HttpServerConfig, where); // it has a url
    for (const [key, value] of Object.entries({ socketPath: config.socketPath, ca: config.ca })) {
      const texts: unknown[] = key === "ca" && Array.isArray(value) ? value : [value ?? ""];
      if (!texts.every((text) => typeof text === "string")) wrong(`${where}.${key} must be a text`);
    }
    // anything else is passed over by TLS without a word, and every certificate then refused
    const authorities: unknown[] = [config.ca ?? []].flat();
    if (!authorities.every((text) => PEM_CERTIFICATE.test(String(text)))) {
      wrong(
        `${where}.ca must be certificates as PEM text (-----BEGIN CERTIFICATE-----). The path of a file is not read: give ` +
          'what is in it, readFileSync(path, "utf8")',
      );
    }
  } else if ("command" in config) {
    if (typeof config.command !== "string" || config.command === "") wrong(`${where}.command must be a text`);
    const args: unknown = config.args ?? [];
    if (!Array.isArray(args) || !args.every((item) => typeof item === "string")) {
      wrong(`${where}.args must be a list of texts`);
    }
    if (given.cwd !== undefined && typeof given.cwd !== "string") wrong(`${where}.cwd must be a text`);
    checkTexts(config.env, `${where}.env`);
    if (config.pool !== undefined && config.concurrency !== undefined) {
      wrong(`${where} has pool and concurrency; a process of a pool has one call at a time, so give one of the two`);
    }
    checkSandbox(config.sandbox, `${where}.sandbox`);
  } else if (typeof config.transport !== "function") {
    wrong(`${where}.transport must be a function that makes a transport`);
  }
}

/** Refuses what is no list of interceptors; a factory that was not called would fail in the middle of the first call. */
function checkInterceptors(list: unknown, where: string): void {
  if (list === undefined) return;
  if (!Array.isArray(list)) wrong(`${where} must be a list of functions (request, next) => outcome`);
  for (const [index, one] of list.entries()) {
    const factory = factoryOf(one);
    if (factory) wrong(`${where}[${index}]: ${factory.name} is a factory; write ${factory.written}`);
    if (typeof one === "function") continue;
    wrong(`${where}[${index}] must be a function (request, next) => outcome, got ${kindOf(one)}`);
  }
}

function checkChoice(value: unknown, choices: readonly string[], where: string): void {
  if (value === undefined || (typeof value === "string" && choices.includes(value))) return;
  wrong(`${where} must be one of ${choices.join(", ")}, got ${JSON.stringify(value) ?? typeof value}`);
}

/**
 * Refuses what `createClient` would not understand.
 * @throws ConfigError `unknown_option` with "did you mean", or `invalid_option`
 */
export function checkClientOptions<Options extends object>(
  options: Options & Pick<ClientOptions, "servers" | "pin">,
): void {
  const where = "createClient(options)";
  const known = [
    "servers",
    "interceptors",
    "events",
    "elicitation",
    "sampling",
    "roots",
    "naming",
    "toolErrors",
    "logLevel",
    "maxResultBytes",
    "info",
    "pin",
    "onFirstStart",
  ];
  checkOptions(options, known, where);
  const given: Record<string, unknown> = { ...options };
  if (!isRecord(given.servers)) wrong(`${where}.servers must be an object of server configurations`);
  for (const [name, config] of Object.entries(options.servers)) {
    if (name === "") wrong(`${where}.servers has a server without a name`);
    checkServer(config, `servers.${name}`);
  }
  if (given.events !== undefined) {
    if (!isRecord(given.events)) wrong(`${where}.events must be an object of handlers`);
    checkOptions(given.events, EVENTS, `${where}.events`);
    for (const [name, handler] of Object.entries(given.events)) {
      if (handler !== undefined && typeof handler !== "function") wrong(`${where}.events.${name} must be a function`);
    }
  }
  if (typeof given.elicitation !== "function") checkChoice(given.elicitation, ["interrupt"], `${where}.elicitation`);
  checkInterceptors(given.interceptors, `${where}.interceptors`);
  if (typeof given.naming !== "function") checkChoice(given.naming, ["prefixed", "plain"], `${where}.naming`);
  pinOptions(options.pin);
  if (given.onFirstStart !== undefined && typeof given.onFirstStart !== "function") {
    wrong(`${where}.onFirstStart must be a function`);
  }
  checkChoice(given.toolErrors, ["return", "throw"], `${where}.toolErrors`);
  checkChoice(given.logLevel, LEVELS, `${where}.logLevel`);
  if (given.info !== undefined) checkOptions(Object(given.info), ["name", "version"], `${where}.info`);
  checkBytes(given.maxResultBytes, where);
}

function checkBytes(value: unknown, where: string): void {
  if (value === undefined || (typeof value === "number" && value > 0)) return;
  wrong(`${where}.maxResultBytes must be a positive number of bytes, got ${JSON.stringify(value) ?? typeof value}`);
}

const READ = "signal timeoutMs totalTimeoutMs headers meta onProgress onLog maxResultBytes".split(" ");

function checkLimits({ maxResultBytes, timeoutMs, totalTimeoutMs }: ReadOptions, where: string): void {
  checkBytes(maxResultBytes, where);
  checkMs(timeoutMs, `${where}.timeoutMs`);
  checkMs(totalTimeoutMs, `${where}.totalTimeoutMs`);
}

/** Refuses a name that is no text. @throws ConfigError `invalid_option` */
export function checkName(method: "callTool" | "getPrompt", name: unknown): void {
  const kind = method === "callTool" ? "tool" : "prompt";
  expectText(name, `${method}(server, ${kind}, args): ${kind}`);
}

/** Refuses arguments of a prompt that are no object; those of a tool may come from a model, which is told. @throws ConfigError `invalid_option` */
export function checkPromptArguments(args: unknown): void {
  if (!isRecord(args)) wrong(`getPrompt(server, prompt, args): args must be an object, got ${kindOf(args)}`);
}

/** Refuses what is no list of addresses. @throws ConfigError `invalid_option` */
export function checkUris(uris: unknown): void {
  if (uris === undefined) return;
  expectList(uris, "readResources(server, uris): uris");
  for (const uri of uris as unknown[]) expectText(uri, "readResources(server, uris): an address"); // it is a list
}

/** Refuses what one call would not understand. @throws ConfigError `unknown_option`, `invalid_option` */
export function checkCallOptions(options: CallOptions): void {
  checkOptions(options, [...READ, "runtime", "driver"], "callTool(…, options)");
  checkLimits(options, "callTool(…, options)");
}

/** The same for reading a resource or rendering a prompt. */
export function checkReadOptions(options: ReadOptions, method: "readResources" | "getPrompt"): void {
  checkOptions(options, READ, `${method}(…, options)`);
  checkLimits(options, `${method}(…, options)`);
}
