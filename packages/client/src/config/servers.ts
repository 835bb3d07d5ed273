import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, resolve } from "node:path";
import { parseEnv } from "node:util";
import { ConfigError, isRecord, messageOf, TenonError } from "@tenon/core";
import { didYouMean, shownValue } from "@tenon/core/internal";
import { type ConfigDocument, checkKey, configError, type KeyPath, pathText } from "@tenon/core/internal/document";
import type { OnAuthorize } from "../auth/index.ts";
import { checkServer } from "../options.ts";
import type { ServerConfig } from "../types/servers.ts";
import { readAuth } from "./auth.ts";
import { ALIASES, ALL_KEYS, FOREIGN, KEYS, type Reached, SELECTING, TYPES } from "./keys.ts";

/** Something that is not wrong, but probably not meant. */
export interface ConfigWarning {
  readonly message: string;
  readonly line: number;
  readonly key: string;
}

/** What reading an entry needs besides the entry. */
export interface EntryContext {
  readonly document: ConfigDocument;
  /** Where relative paths start. */
  readonly folder: string;
  warn(path: KeyPath, message: string): void;
  /** Has a person sign in where `auth` of an entry is `oauth`. */
  readonly onAuthorize?: OnAuthorize | false | undefined;
}

/** Whether an entry is switched off; looked at before anything else in it, so that its variables may be unset. */
export function isDisabled({ document }: EntryContext, path: KeyPath, entry: Record<string, unknown>): boolean {
  for (const key of ["disabled", "enabled"]) {
    const value = entry[key];
    if (value !== undefined && typeof value !== "boolean") {
      throw configError(document, [...path, key], `must be true or false, got ${shownValue(value)}`);
    }
  }
  return entry.disabled === true || entry.enabled === false;
}

/** Refuses misspelt keys, warns of strange ones; gives the entry with other programs' names translated. */
function knownKeys(context: EntryContext, path: KeyPath, entry: Record<string, unknown>): Record<string, unknown> {
  const { document, warn } = context;
  const out: [string, unknown][] = [];
  const selected: Record<"include" | "exclude", unknown[]> = { include: [], exclude: [] };
  for (const [key, value] of Object.entries(entry)) {
    const list = Object.hasOwn(SELECTING, key) ? SELECTING[key] : undefined;
    if (list) {
      if (!Array.isArray(value) || value.some((item) => typeof item !== "string")) {
        throw configError(document, [...path, key], `must be a list of tools, got ${shownValue(value)}`);
      }
      // an empty list means "no choice made" in these programs
      if (value.length > 0) selected[list].push(...value);
      continue;
    }
    if (FOREIGN.includes(key)) continue;
    if (!checkKey(document, path, key, ALL_KEYS)) {
      warn([...path, key], "is no key this program knows; it has no effect");
      continue;
    }
    const ours = ALIASES[key];
    if (ours !== undefined && ours in entry)
      throw configError(document, [...path, key], `says the same as ${ours}; keep one`);
    out.push([ours ?? key, value]);
  }
  const known: Record<string, unknown> = Object.fromEntries(out);
  for (const list of ["include", "exclude"] as const) {
    const own = known[list];
    if (selected[list].length > 0) known[list] = [...(Array.isArray(own) ? own : []), ...selected[list]];
  }
  return known;
}

/** What a server is reached by, as the entry has it; the word that it may say must fit. */
function reachedBy({ document }: EntryContext, path: KeyPath, entry: Record<string, unknown>): Reached {
  const [key = "type"] = ["type", "transport", "transportType"].filter((name) => entry[name] !== undefined);
  const word = entry[key];
  const all = Object.keys(KEYS) as Reached[]; // its own keys
  const has = all.filter((name) => entry[name] !== undefined);
  const [only, other] = has;
  if (other) throw configError(document, path, `has both ${other} and ${only}; keep the one that is meant`);
  if (word === undefined) {
    if (only) return only;
    throw configError(document, path, "needs a command (a program to start) or a url (a server to reach)");
  }
  const kind = typeof word === "string" && Object.hasOwn(TYPES, word) ? TYPES[word] : undefined;
  if (!kind) {
    const words = Object.keys(TYPES);
    const near = typeof word === "string" ? didYouMean(word, words) : undefined;
    const hint = near ? `did you mean "${near}"?` : "expected stdio, http, streamable-http or sse";
    throw configError(document, [...path, key], `is ${shownValue(word)}; ${hint}`);
  }
  if (only && (only === "command") === (kind === "stdio")) return only;
  const needed = kind === "http" ? "url" : "command";
  throw configError(document, path, `has ${key} ${shownValue(word)} and needs a ${needed}`);
}

/** Texts; a number or a yes/no is written as text, and null takes a value away. */
function texts({ document }: EntryContext, path: KeyPath, value: unknown): Record<string, string> {
  if (!isRecord(value)) throw configError(document, path, `must be an object of texts, got ${shownValue(value)}`);
  const out: [string, string][] = [];
  for (const [key, item] of Object.entries(value)) {
    if (item === null) continue;
    if (typeof item !== "string" && typeof item !== "number" && typeof item !== "boolean") {
      throw configError(document, [...path, key], `must be a text, got ${shownValue(item)}`);
    }
    out.push([key, String(item)]);
  }
  return Object.fromEntries(out);
}

async function fromEnvFile(
  { document, folder }: EntryContext,
  path: KeyPath,
  name: unknown,
): Promise<Record<string, string>> {
  if (typeof name !== "string" || name === "")
    throw configError(document, path, `must be the path of a file, got ${shownValue(name)}`);
  try {
    const parsed = parseEnv(await readFile(resolve(folder, name), "utf8"));
    return Object.fromEntries(
      Object.entries(parsed).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
    );
  } catch (cause) {
    const reason = messageOf(cause);
    throw configError(document, path, `names a file that cannot be read: ${reason}`, "invalid_config", cause);
  }
}

async function processParts(
  context: EntryContext,
  path: KeyPath,
  entry: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const { document, folder, warn } = context;
  const { command, args, cwd } = entry;
  if (
    args !== undefined &&
    !(Array.isArray(args) && args.every((item) => typeof item === "string" || typeof item === "number"))
  ) {
    throw configError(document, [...path, "args"], `must be a list of texts, got ${shownValue(args)}`);
  }
  if (typeof command === "string" && args === undefined && /\S\s+\S/.test(command) && !isAbsolute(command)) {
    warn([...path, "command"], "is one program and is not split at spaces; put its arguments into args");
  }
  const file = entry.envFile === undefined ? {} : await fromEnvFile(context, [...path, "envFile"], entry.envFile);
  const own = entry.env === undefined ? {} : texts(context, [...path, "env"], entry.env);
  const env = { ...file, ...own };
  return {
    ...(args !== undefined && { args: args.map(String) }),
    ...(Object.keys(env).length > 0 && { env }),
    ...(typeof cwd === "string" && { cwd: resolve(folder, cwd) }),
  };
}

function timeoutOf(
  { document, warn }: EntryContext,
  path: KeyPath,
  entry: Record<string, unknown>,
): number | undefined {
  const { timeout } = entry;
  if (timeout === undefined) return undefined;
  if (typeof timeout !== "number" || !(timeout > 0) || !Number.isFinite(timeout)) {
    throw configError(
      document,
      [...path, "timeout"],
      `must be a positive number of milliseconds, got ${shownValue(timeout)}`,
    );
  }
  if (timeout < 1_000)
    warn([...path, "timeout"], `is ${timeout} milliseconds; some programs count seconds here, this one does not`);
  return timeout;
}

/**
 * One entry of a configuration, variables replaced, as an option of `createClient`.
 * @throws ConfigError naming file, line and key
 */
export async function readServer(
  context: EntryContext,
  path: KeyPath,
  given: Record<string, unknown>,
): Promise<ServerConfig> {
  const { document, warn } = context;
  const entry = knownKeys(context, path, given);
  const kind = reachedBy(context, path, entry);
  const own = KEYS[kind];
  const config: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(entry)) {
    if (own.includes(key)) config[key] = value;
    else if ([...Object.values(KEYS).flat(), "envFile"].includes(key) && !(kind === "command" && key === "envFile")) {
      warn([...path, key], `has no effect on a server reached by ${kind}`);
    }
  }
  if (kind === "command") Object.assign(config, await processParts(context, path, entry));
  else if (entry.headers !== undefined) config.headers = texts(context, [...path, "headers"], entry.headers);
  if (config.auth !== undefined) config.auth = await readAuth(context, [...path, "auth"], config.auth);
  const timeout = timeoutOf(context, path, entry);
  if (timeout !== undefined) config.timeoutMs ??= timeout;
  const where = pathText(path);
  try {
    checkServer(config, where);
    return config;
  } catch (cause) {
    if (!(cause instanceof TenonError)) throw cause;
    const [key] = /^\w+/.exec(cause.message.slice(where.length + 1)) ?? [];
    const line = document.lineOf(key === undefined ? path : [...path, key]);
    const data = { file: document.file, line, key: where };
    throw new ConfigError(`${document.file}:${line}: ${cause.message}`, { code: cause.code, data, cause });
  }
}

/** The folder relative paths of a file start from. */
export function folderOf(file: string): string {
  return dirname(resolve(file));
}
