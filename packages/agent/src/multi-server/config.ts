import type { ServerConfig } from "@tenon/client";
import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions, didYouMean } from "@tenon/core/internal";
import { replays } from "../tool/tools.ts";
import type { Connection, MultiServerConfig } from "./types.ts";

const WHERE = "new MultiServerMCPClient(config)";

const KEYS = [
  ..."mcpServers throwOnLoadError prefixToolNameWithServerName additionalToolNamePrefix useStandardContentBlocks".split(
    " ",
  ),
  ..."outputHandling defaultToolTimeout onConnectionError handleToolErrors provider toolInterceptors callbacks elicitation".split(
    " ",
  ),
  ..."legacyQuestions logLevel beforeToolCall afterToolCall onMessage onProgress onInitialized onToolsListChanged".split(
    " ",
  ),
];

const FLAGS = [
  "throwOnLoadError",
  "prefixToolNameWithServerName",
  "useStandardContentBlocks",
  "handleToolErrors",
] as const;

/** Options of a server of `createClient`, which a connection may have too. */
const ANY_SERVER = [
  "required",
  "connectTimeoutMs",
  "timeoutMs",
  "include",
  "exclude",
  "expectHosts",
  "grants",
  "contract",
];
const STDIO_SERVER = ["command", "args", "env", "cwd", "sandbox", "maxResponseBytes", "concurrency", "pool"];
const HTTP_SERVER = ["url", "headers", "auth", "socketPath", "ca", "maxResponseBytes", "breaker"];
/** What a connection may say besides. */
const OWN = ["transport", "type", "outputHandling", "defaultToolTimeout"];
const STDIO_OWN = ["encoding", "stderr", "restart"];
const HTTP_OWN = ["reconnect", "automaticSSEFallback"];
const HTTP_NAMES = ["http", "sse", "streamable_http", "streamable-http"];

const OWN_TRANSPORT =
  "use auth: oauth(), clientCredentials() or bearer() of @tenon/client/auth; or give the server a transport of your own: " +
  "{ transport: () => new StreamableHTTPClientTransport(new URL(url), { authProvider }) } of @modelcontextprotocol/client";

/** Options that exist in the packages people come from, and what to do instead. */
const NOT_HERE: Readonly<Record<string, string>> = {
  onPromptsListChanged: "listPrompts of getClient(server) asks the server when it is called",
  onResourcesListChanged: "listResources asks the server when it is called",
  onResourcesUpdated: "read the resource again when you need it",
  onRootsListChanged: "no server sends it; leave it out",
  onCancelled: "a call that a server ends rejects with its reason; watch it with an interceptor in toolInterceptors",
};
const NOT_IN_CONNECTION: Readonly<Record<string, string>> = {
  authProvider: OWN_TRANSPORT,
  httpx_client_factory: OWN_TRANSPORT,
  session_kwargs: "sessions are the client's own affair; leave it out",
  timeout: "use connectTimeoutMs for connecting and defaultToolTimeout for calls, in milliseconds",
  sse_read_timeout: "use defaultToolTimeout, in milliseconds",
  terminate_on_close: "sessions are always ended on close(); leave it out",
};

function refuse(where: string, key: string, instead: string): never {
  throw new ConfigError(`${where} does not support "${key}": ${instead}`, {
    code: "unsupported_option",
    data: { key, instead },
  });
}

function wrong(message: string): never {
  throw new ConfigError(message, { code: "invalid_option" });
}

function checkReopening(value: unknown, where: string): void {
  if (value === undefined) return;
  if (!isRecord(value)) wrong(`${where} must be an object { enabled, maxAttempts, delayMs }`);
  checkOptions(value, ["enabled", "maxAttempts", "delayMs"], where);
  if (value.enabled === false) {
    const instead = "a lost connection is opened again only when it is next used; leave it out, or close() the client";
    refuse(where, "enabled: false", instead);
  }
}

/** Refuses what no option `outputHandling` can be. */
function checkHandling(value: unknown, where: string): void {
  if (value === undefined || value === "content" || value === "artifact") return;
  if (!isRecord(value)) wrong(`${where} must be "content", "artifact" or an object of these by kind of content`);
  checkOptions(value, ["text", "image", "audio", "resource", "resource_link"], where);
  for (const [kind, place] of Object.entries(value)) {
    if (place !== undefined && place !== "content" && place !== "artifact") {
      wrong(`${where}.${kind} must be "content" or "artifact", got ${JSON.stringify(place)}`);
    }
  }
}

function checkTimeout(value: unknown, where: string): void {
  if (value === undefined || (typeof value === "number" && value >= 0)) return;
  wrong(`${where} must be a number of milliseconds, got ${JSON.stringify(value) ?? typeof value}`);
}

function checkTransport(given: Record<string, unknown>, where: string): void {
  const name = given.transport ?? given.type;
  if (name === undefined || typeof name === "function") return;
  if (name === "websocket")
    refuse(where, 'transport: "websocket"', "it is no transport of MCP; give a function that makes your transport");
  const expected = "command" in given ? ["stdio"] : "url" in given ? HTTP_NAMES : ["stdio", ...HTTP_NAMES];
  if (typeof name === "string" && expected.includes(name)) {
    if ("command" in given || "url" in given) return;
    const missing = name === "stdio" ? "a command" : "a url";
    wrong(`${where} has transport "${name}" and needs ${missing}`);
  }
  const near = typeof name === "string" ? didYouMean(name, expected) : undefined;
  const hint = near ? `did you mean "${near}"?` : `expected ${expected.join(", ")}`;
  wrong(`${where}.transport is ${JSON.stringify(name)}; ${hint}`);
}

/** A connection as a server of `createClient`, which checks what is left. */
function serverOf(name: string, connection: Connection): ServerConfig {
  const where = `mcpServers.${name}`;
  if (!isRecord(connection)) wrong(`${where} must be an object with command, url or transport`);
  const given: Record<string, unknown> = { ...connection };
  for (const [key, instead] of Object.entries(NOT_IN_CONNECTION)) if (key in given) refuse(where, key, instead);
  const stdio = [...STDIO_SERVER, ...STDIO_OWN];
  const http = [...HTTP_SERVER, ...HTTP_OWN];
  // a misspelt key is the likelier reason for a missing kind
  const kind = "command" in given ? stdio : "url" in given ? http : [...new Set([...stdio, ...http])];
  checkOptions(given, [...OWN, ...ANY_SERVER, ...kind], where);
  checkTransport(given, where);
  checkHandling(given.outputHandling, `${where}.outputHandling`);
  checkTimeout(given.defaultToolTimeout, `${where}.defaultToolTimeout`);
  checkReopening(given.restart, `${where}.restart`);
  checkReopening(given.reconnect, `${where}.reconnect`);
  if (given.automaticSSEFallback === false) {
    refuse(
      where,
      "automaticSSEFallback: false",
      "the older transport is tried only where a server refuses Streamable HTTP; leave it out",
    );
  }
  const outputs = ["inherit", "ignore", "pipe", "overlapped"];
  if (given.stderr !== undefined && !outputs.includes(String(given.stderr))) {
    wrong(`${where}.stderr must be one of ${outputs.join(", ")}, got ${JSON.stringify(given.stderr)}`);
  }
  if (given.encoding !== undefined && !/^utf-?8$/i.test(String(given.encoding))) {
    refuse(where, `encoding: ${JSON.stringify(given.encoding)}`, "messages are UTF-8 by the protocol; leave it out");
  }
  const own = "command" in given ? STDIO_OWN : "url" in given ? HTTP_OWN : [];
  const native = typeof given.transport === "function";
  for (const key of [...OWN, ...own]) if (!(native && key === "transport")) delete given[key];
  // createClient checks what the values are
  return given as unknown as ServerConfig;
}

function looksLikeConnection(value: unknown): boolean {
  return isRecord(value) && ["command", "url", "transport", "type"].some((key) => key in value);
}

/** The configuration in full: a map of servers alone is what `mcpServers` would be. */
function inFull(config: MultiServerConfig | Readonly<Record<string, Connection>>): MultiServerConfig {
  if (!isRecord(config)) wrong(`${WHERE} needs an object with mcpServers`);
  if ("mcpServers" in config) return config as unknown as MultiServerConfig; // its keys are checked next
  for (const [key, value] of Object.entries(config)) {
    if (looksLikeConnection(value)) continue;
    const near = didYouMean(key, KEYS);
    const hint = near ? `did you mean "${near}"?` : "each server needs a command, a url or a transport";
    throw new ConfigError(`${WHERE} has no mcpServers, and "${key}" is no server; ${hint}`, {
      code: "unknown_option",
      data: { key, near },
    });
  }
  return { mcpServers: config };
}

/** A configuration that was checked, and its servers as `createClient` takes them. */
export interface CheckedConfig {
  readonly config: MultiServerConfig;
  readonly servers: Readonly<Record<string, ServerConfig>>;
}

/**
 * Refuses what the client would not understand.
 * @throws ConfigError `unknown_option` with "did you mean", `unsupported_option` naming the alternative, or `invalid_option`
 */
export function checkConfig(given: MultiServerConfig | Readonly<Record<string, Connection>>): CheckedConfig {
  const config = inFull(given);
  for (const [key, instead] of Object.entries(NOT_HERE)) if (key in config) refuse(WHERE, key, instead);
  checkOptions(config, KEYS, WHERE);
  if (!isRecord(config.mcpServers)) wrong(`${WHERE}.mcpServers must be an object of servers`);
  const names = Object.keys(config.mcpServers);
  if (names.length === 0) wrong(`${WHERE}.mcpServers names no server`);
  checkHandling(config.outputHandling, `${WHERE}.outputHandling`);
  checkTimeout(config.defaultToolTimeout, `${WHERE}.defaultToolTimeout`);
  if (config.callbacks !== undefined) {
    if (!isRecord(config.callbacks)) wrong(`${WHERE}.callbacks must be an object of functions`);
    checkOptions(config.callbacks, ["onProgress", "onLoggingMessage", "onElicitation"], `${WHERE}.callbacks`);
  }
  for (const key of FLAGS) {
    if (config[key] === undefined || typeof config[key] === "boolean") continue;
    wrong(`${WHERE}.${key} must be true or false, got ${JSON.stringify(config[key])}`);
  }
  replays(config.legacyQuestions, WHERE);
  const policy = config.onConnectionError ?? "throw";
  if (typeof policy !== "function" && policy !== "throw" && policy !== "ignore") {
    wrong(`${WHERE}.onConnectionError must be "throw", "ignore" or a function, got ${JSON.stringify(policy)}`);
  }
  if (config.callbacks?.onElicitation && config.elicitation) {
    wrong(`${WHERE} has both elicitation and callbacks.onElicitation; leave one out`);
  }
  const entries = Object.entries(config.mcpServers).map(
    ([name, connection]) => [name, serverOf(name, connection)] as const,
  );
  return { config, servers: Object.fromEntries(entries) };
}
