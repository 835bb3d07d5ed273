import { CHOICES, SERVER_OPTIONS } from "../options.ts";

/** Top level: read here. */
export const TOP_KEYS = [
  "$schema",
  "mcpServers",
  "servers",
  "inputs",
  "pin",
  "routing",
  "registry",
  ...Object.keys(CHOICES),
];
/** Top level: other programs' parts of the same file, and the parts that serve tools instead of reaching them. */
export const TOP_FOREIGN = [
  "server",
  "mcp",
  "tools",
  "chat",
  "model",
  "console",
  "globalShortcut",
  "preferences",
  "extensions",
];

/** What a server's entry may say besides the options of `createClient`. */
const ENTRY_KEYS = ["type", "transport", "transportType", "disabled", "enabled", "timeout", "envFile"] as const;
/** Other programs' names for a key of ours. */
export const ALIASES: Readonly<Record<string, string>> = { serverUrl: "url", httpUrl: "url" };
/** Keys of other programs that change nothing here: descriptions, and consent this program does not take from a file. */
export const FOREIGN = [
  "alwaysAllow",
  "autoApprove",
  "trust",
  "description",
  "name",
  "icon",
  "iconUrl",
  "metadata",
  "gallery",
  "version",
  "dev",
  "note",
  "notes",
  "comment",
  "_comment",
  "tags",
  "source",
  "settings",
  "watchPaths",
  "registryUrl",
  "instructions",
];
/** Other programs' lists of tools that are used or left out, and what they are called here. */
export const SELECTING: Readonly<Record<string, "include" | "exclude">> = {
  disabledTools: "exclude",
  excludeTools: "exclude",
  enabledTools: "include",
  includeTools: "include",
  allowedTools: "include",
};

/** The options of `createClient` an entry may give, by kind. `transport` is a function there and a word here. */
export const KEYS = {
  url: Object.keys(SERVER_OPTIONS.url),
  replicas: Object.keys(SERVER_OPTIONS.replicas),
  service: Object.keys(SERVER_OPTIONS.service),
  command: Object.keys(SERVER_OPTIONS.command),
} as const;
/** What a server of a file may be reached by. */
export type Reached = keyof typeof KEYS;

/** Everything an entry may contain without a warning. */
export const ALL_KEYS = [
  ...new Set([
    ...Object.values(KEYS).flat(),
    ...ENTRY_KEYS,
    ...Object.keys(ALIASES),
    ...FOREIGN,
    ...Object.keys(SELECTING),
  ]),
];

/** Words for the kind of a server, and what they mean here. */
export const TYPES: Readonly<Record<string, "stdio" | "http">> = {
  stdio: "stdio",
  local: "stdio",
  http: "http",
  "streamable-http": "http",
  streamableHttp: "http",
  streamable_http: "http",
  remote: "http",
  // a server of the first revision answers at the same address; the connection finds out
  sse: "http",
};
