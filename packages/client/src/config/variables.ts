import { homedir } from "node:os";
import { basename, sep } from "node:path";
import { isRecord } from "@tenon/core";
import { didYouMean } from "@tenon/core/internal";
import { type ConfigDocument, configError, type KeyPath } from "./document.ts";

/** Something a configuration asks the person for, as VS Code writes it. */
export interface ConfigInput {
  readonly id: string;
  readonly type: "promptString" | "pickString";
  readonly description?: string;
  readonly default?: string;
  /** True when what is typed must not be shown. */
  readonly password?: boolean;
  /** What may be picked; for `pickString`. */
  readonly options?: readonly string[];
}

/** Where the values of variables come from. */
export interface VariableSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workspaceFolder: string;
  readonly inputs: ReadonlyMap<string, ConfigInput>;
  /** Asks for an input once; undefined when nobody answers. */
  ask(input: ConfigInput): Promise<string | undefined>;
}

/** `${…}`, or `$${` which stands for a plain `${`. */
const VARIABLE = /\$\$\{|\$\{([^{}]*)\}/g;

async function lookUp(document: ConfigDocument, path: KeyPath, body: string, from: VariableSources): Promise<string> {
  const unset = (problem: string, code = "unset_variable") => configError(document, path, problem, code);
  const special: Record<string, string> = {
    workspaceFolder: from.workspaceFolder,
    workspaceRoot: from.workspaceFolder,
    workspaceFolderBasename: basename(from.workspaceFolder),
    userHome: homedir(),
    pathSeparator: sep,
    "/": sep,
  };
  if (Object.hasOwn(special, body)) return special[body] ?? "";
  const [, id] = /^input:(.+)$/.exec(body) ?? [];
  if (id !== undefined) {
    const input = from.inputs.get(id);
    if (!input) {
      const near = didYouMean(id, [...from.inputs.keys()]);
      throw unset(
        `uses \${${body}}, but "inputs" has no "${id}"${near ? `; did you mean "${near}"?` : ""}`,
        "unknown_input",
      );
    }
    const answer = await from.ask(input);
    if (answer !== undefined) return answer;
    throw unset(
      `needs a value for \${${body}}${input.description ? ` (${input.description})` : ""}, and nobody gave one`,
      "input_needed",
    );
  }
  // ${NAME}, ${env:NAME}, each with :-default
  const [, name, fallback] = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(body) ?? [];
  if (name === undefined) {
    throw unset(
      `uses \${${body}}, which is no variable; write \${NAME}, \${NAME:-default}, \${input:id} or \${workspaceFolder}, or $\${ for a plain \${`,
      "unknown_variable",
    );
  }
  const value = Object.hasOwn(from.env, name) ? from.env[name] : undefined;
  if (fallback !== undefined) return value === undefined || value === "" ? fallback : value;
  if (value !== undefined) return value;
  const near = didYouMean(
    name,
    Object.keys(from.env).filter((key) => from.env[key] !== undefined),
  );
  throw unset(
    `uses \${${body}}, but the environment has no ${name}; set it, or write \${${body}:-default}${near ? ` (did you mean ${near}?)` : ""}`,
  );
}

/**
 * Replaces the variables in every text inside a value. What a variable holds is not looked into again.
 * @throws ConfigError `unset_variable`, `unknown_variable`, `unknown_input`, `input_needed` naming file, line and key
 */
export async function expand(
  document: ConfigDocument,
  path: KeyPath,
  value: unknown,
  from: VariableSources,
): Promise<unknown> {
  if (typeof value === "string") {
    let out = "";
    let at = 0;
    for (const match of value.matchAll(VARIABLE)) {
      out += value.slice(at, match.index);
      out += match[1] === undefined ? "${" : await lookUp(document, path, match[1], from);
      at = match.index + match[0].length;
    }
    return out + value.slice(at);
  }
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const [index, item] of value.entries()) items.push(await expand(document, [...path, index], item, from));
    return items;
  }
  if (!isRecord(value)) return value;
  const entries: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value))
    entries.push([key, await expand(document, [...path, key], item, from)]);
  return Object.fromEntries(entries);
}
