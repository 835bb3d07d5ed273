import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { ConfigError, isRecord, messageOf } from "@tenon/core";
import { checkOptions, shownValue } from "@tenon/core/internal";
import {
  type ConfigDocument,
  checkKey,
  configError,
  type KeyPath,
  parseDocumentText,
  pathText,
} from "@tenon/core/internal/document";
import type { OnAuthorize } from "../auth/index.ts";
import { expectText } from "../expect.ts";
import { CHOICES } from "../options.ts";
import type { ClientOptions } from "../types/client.ts";
import type { ServerConfig } from "../types/servers.ts";
import { TOP_FOREIGN, TOP_KEYS } from "./keys.ts";
import { readRegistry, readRouting } from "./registry.ts";
import { type ConfigWarning, type EntryContext, folderOf, isDisabled, readServer } from "./servers.ts";
import { type ConfigInput, expand, type VariableSources } from "./variables.ts";

/** Where a configuration's variables come from. */
export interface ConfigOptions {
  /** Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Answers `${input:…}`, once per id; left out or undefined, the input's default is taken. */
  readonly input?: (input: ConfigInput) => string | undefined | Promise<string | undefined>;
  /** What `${workspaceFolder}` stands for. Default: the folder of the file; its parent for a file in `.vscode` or `.cursor`. */
  readonly workspaceFolder?: string;
  /** Has a person sign in where an entry says `"auth": { "type": "oauth" }`; see `oauth`. Default: opens the browser. */
  readonly onAuthorize?: OnAuthorize | false;
}

/** Where a configuration's text comes from. */
export interface ParseOptions extends ConfigOptions {
  /** Path of the file, for messages and relative paths. Default `tenon.json` in the current folder. */
  readonly file?: string;
  /** Default: by the file's ending and the text's first character. */
  readonly format?: "json" | "yaml";
}

const OPTIONS = ["env", "input", "workspaceFolder", "onAuthorize"];

/** A configuration ready for `createClient`. */
export interface Config {
  /** The servers of the file that are switched on. */
  readonly servers: Record<string, ServerConfig>;
  /** Names of servers that are switched off in the file. */
  readonly disabled: readonly string[];
  /** `servers` and everything else the file says to `createClient`: `createClient({ ...config.client, elicitation })`. */
  readonly client: Pick<ClientOptions, "servers" | "pin" | "routing" | "registry" | keyof typeof CHOICES>;
  /** What is not wrong but probably not meant, ready to show. */
  readonly warnings: readonly ConfigWarning[];
}

function readInputs(document: ConfigDocument, value: unknown): Map<string, ConfigInput> {
  const inputs = new Map<string, ConfigInput>();
  if (value === undefined) return inputs;
  if (!Array.isArray(value)) throw configError(document, ["inputs"], `must be a list, got ${shownValue(value)}`);
  for (const [index, item] of value.entries()) {
    const path = ["inputs", index];
    if (!isRecord(item) || typeof item.id !== "string" || item.id === "")
      throw configError(document, path, "needs an id");
    const { id, type = "promptString", description, password, options } = item;
    if (type !== "promptString" && type !== "pickString") {
      if (type === "command") continue; // runs inside an editor only; an error where it is used
      throw configError(document, [...path, "type"], `is ${shownValue(type)}; expected promptString or pickString`);
    }
    const picks = Array.isArray(options)
      ? options.map((option) => (isRecord(option) && typeof option.value === "string" ? option.value : String(option)))
      : undefined;
    inputs.set(id, {
      id,
      type,
      ...(typeof description === "string" && { description }),
      ...(typeof item.default === "string" && { default: item.default }),
      ...(password === true && { password }),
      ...(picks && { options: picks }),
    });
  }
  return inputs;
}

/** The answers to inputs, each asked for once. */
function askOnce(answer: ConfigOptions["input"]): VariableSources["ask"] {
  const asked = new Map<string, Promise<string | undefined>>();
  return (input) => {
    const known = asked.get(input.id);
    if (known) return known;
    const asking = Promise.resolve(answer?.(input)).then((value) => value ?? input.default);
    asked.set(input.id, asking);
    return asking;
  };
}

/** The servers of a file and the key they stand under: Claude Desktop's and Cursor's, VS Code's, or VS Code's settings. */
function serverEntries(document: ConfigDocument, top: Record<string, unknown>): [KeyPath, Record<string, unknown>][] {
  const { mcp } = top;
  const inSettings = isRecord(mcp) && isRecord(mcp.servers);
  const places: KeyPath[] = [["mcpServers"], ["servers"], ...(inSettings ? [["mcp", "servers"]] : [])];
  const found: [KeyPath, Record<string, unknown>][] = [];
  const seen = new Set<string>();
  for (const place of places) {
    const value = place.length === 1 ? top[String(place[0])] : isRecord(mcp) ? mcp.servers : undefined;
    if (value === undefined || value === null) continue;
    if (!isRecord(value)) throw configError(document, place, `must be an object of servers, got ${shownValue(value)}`);
    for (const [name, entry] of Object.entries(value)) {
      const path = [...place, name];
      if (name === "") throw configError(document, path, "has no name");
      if (seen.has(name))
        throw configError(document, path, `names a server that stands under ${pathText([found[0]?.[0][0] ?? ""])} too`);
      if (!isRecord(entry))
        throw configError(document, path, `must be an object with command or url, got ${shownValue(entry)}`);
      seen.add(name);
      found.push([path, entry]);
    }
  }
  return found;
}

function checkTop(document: ConfigDocument, top: Record<string, unknown>, warn: EntryContext["warn"]): void {
  for (const key of Object.keys(top)) {
    if (TOP_FOREIGN.includes(key)) continue;
    if (!checkKey(document, [], key, TOP_KEYS)) warn([key], "is no key this program knows; it has no effect");
  }
  if (["mcpServers", "servers", "mcp"].every((key) => top[key] === undefined)) {
    warn([], 'has no "mcpServers", so there is no server');
  }
}

async function clientOptions(
  document: ConfigDocument,
  top: Record<string, unknown>,
  from: VariableSources,
  folder: string,
): Promise<Omit<Config["client"], "servers">> {
  const out: Record<string, unknown> = {};
  for (const [key, choices] of Object.entries(CHOICES)) {
    const value = await expand(document, [key], top[key], from);
    if (value === undefined) continue;
    if (!choices.some((choice) => choice === value)) {
      throw configError(document, [key], `must be one of ${choices.join(", ")}, got ${shownValue(value)}`);
    }
    out[key] = value;
  }
  const routing = readRouting(document, await expand(document, ["routing"], top.routing, from));
  if (routing) out.routing = routing;
  const registry = readRegistry(document, await expand(document, ["registry"], top.registry, from), folder);
  if (registry) out.registry = registry;
  const pin = await expand(document, ["pin"], top.pin, from);
  if (pin === undefined || pin === false) return out;
  const given = isRecord(pin) ? pin : { file: pin };
  const { file, onFirstUse, ...others } = given;
  for (const key of Object.keys(others)) {
    if (!checkKey(document, ["pin"], key, ["file", "onFirstUse"])) {
      throw configError(document, ["pin", key], "is no known key; known keys: file, onFirstUse", "unknown_option");
    }
  }
  if (typeof file !== "string" || file === "") {
    throw configError(document, ["pin"], `must be the path of a lock file, got ${shownValue(pin)}`);
  }
  if (onFirstUse !== undefined && onFirstUse !== "accept" && onFirstUse !== "refuse") {
    throw configError(document, ["pin", "onFirstUse"], `must be "accept" or "refuse", got ${shownValue(onFirstUse)}`);
  }
  return { ...out, pin: { file: resolve(folder, file), ...(onFirstUse !== undefined && { onFirstUse }) } };
}

/**
 * Reads a configuration from its text: the shape of Claude Desktop and Cursor (`mcpServers`), or VS Code's (`servers`,
 * `inputs`), as JSON with comments or as YAML. `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:id}` and
 * `${workspaceFolder}` are replaced in every text of servers that are not disabled; `$${` stands for a plain `${`.
 *
 * @throws ConfigError `invalid_config`, `unknown_option`, `invalid_option`, `unset_variable`, `unknown_variable`,
 *   `unknown_input`, `input_needed`; the message names file, line and key, and `data` holds them
 */
export async function parseConfig(text: string, options: ParseOptions = {}): Promise<Config> {
  expectText(text, "parseConfig(text, options): text");
  checkOptions(options, [...OPTIONS, "file", "format"], "parseConfig(text, options)");
  const { file = "tenon.json", format, env = process.env } = options;
  const document = parseDocumentText(text, file, format, "an object with mcpServers");
  const top = document.value as Record<string, unknown>; // parseDocumentText lets nothing else through
  const folder = folderOf(file);
  const inEditorFolder = /[/\\]\.(?:vscode|cursor)$/.test(folder);
  const workspaceFolder = options.workspaceFolder ?? (inEditorFolder ? resolve(folder, "..") : folder);
  const warnings: ConfigWarning[] = [];
  const warn: EntryContext["warn"] = (path, message) => {
    const line = document.lineOf(path);
    const key = pathText(path);
    warnings.push({ message: `${file}:${line}: ${key === "" ? "" : `${key} `}${message}`, line, key });
  };
  checkTop(document, top, warn);
  const inputs = readInputs(document, top.inputs ?? (isRecord(top.mcp) ? top.mcp.inputs : undefined));
  const from: VariableSources = { env, workspaceFolder, inputs, ask: askOnce(options.input) };
  const context: EntryContext = { document, folder: workspaceFolder, warn, onAuthorize: options.onAuthorize };
  const servers: [string, ServerConfig][] = [];
  const disabled: string[] = [];
  for (const [path, entry] of serverEntries(document, top)) {
    const name = String(path.at(-1));
    if (isDisabled(context, path, entry)) disabled.push(name);
    else {
      const expanded = (await expand(document, path, entry, from)) as Record<string, unknown>; // an object stays one
      servers.push([name, await readServer(context, path, expanded)]);
    }
  }
  const all = Object.fromEntries(servers);
  const others = await clientOptions(document, top, from, folder);
  return { servers: all, disabled, client: { servers: all, ...others }, warnings };
}

/**
 * Reads a configuration file; see `parseConfig`.
 *
 * @example
 * const config = await loadConfig("mcp.json");
 * for (const { message } of config.warnings) console.error(message);
 * await using client = createClient(config.client);
 * @throws ConfigError `no_config` when the file cannot be read, and as `parseConfig`
 */
export async function loadConfig(path: string, options: ConfigOptions = {}): Promise<Config> {
  checkOptions(options, OPTIONS, "loadConfig(path, options)");
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    const reason = messageOf(cause);
    throw new ConfigError(`the configuration ${path} cannot be read: ${reason}`, { code: "no_config", cause });
  }
  return parseConfig(text, { ...options, file: path });
}
