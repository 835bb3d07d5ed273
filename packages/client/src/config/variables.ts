import { homedir } from "node:os";
import { basename, sep } from "node:path";
import { didYouMean } from "@tenon/core/internal";
import {
  type ConfigDocument,
  configError,
  expand as expandIn,
  type KeyPath,
  readEnvironment,
} from "@tenon/core/internal/document";

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
  const found = readEnvironment(body, from.env);
  if (found === undefined) {
    throw unset(
      `uses \${${body}}, which is no variable; write \${NAME}, \${NAME:-default}, \${input:id} or \${workspaceFolder}, or $\${ for a plain \${`,
      "unknown_variable",
    );
  }
  if ("problem" in found) throw unset(found.problem);
  return found.value;
}

/**
 * Replaces the variables in every text inside a value. What a variable holds is not looked into again.
 * @throws ConfigError `unset_variable`, `unknown_variable`, `unknown_input`, `input_needed` naming file, line and key
 */
export const expand = (
  document: ConfigDocument,
  path: KeyPath,
  value: unknown,
  from: VariableSources,
): Promise<unknown> => expandIn(path, value, (at, body) => lookUp(document, at, body, from));
