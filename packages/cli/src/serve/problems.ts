import { type ConfigDocument, type KeyPath, pathText } from "@tenon/core/internal/document";
import { CommandError } from "../failure.ts";

/** One thing wrong with a file, and where. */
export interface Problem {
  /** The keys that lead to it: `server.port`; empty for the whole file. */
  readonly path: string;
  /** Both counted from 1. */
  readonly line: number;
  readonly column: number;
  /** What was given, what was expected, what to do. */
  readonly message: string;
}

/** Collects what is wrong with a file, so that all of it is said at once. */
export interface Problems {
  /** Notes one, unless that place has one already: what follows from it is no news. */
  add(path: KeyPath, message: string): void;
  /** Has what a variable holds, which may be secret, never be shown: its name stands there instead. */
  hide(variable: string, value: string): void;
  /** Whether there is one at this place, above it or below. */
  has(path: KeyPath): boolean;
  /** All of them, in the order of the file. */
  all(): readonly Problem[];
}

/** Shorter values are words and numbers that stand in messages anyway. */
const MIN_HIDDEN = 6;

const startsWith = (path: KeyPath, begin: KeyPath): boolean => begin.every((key, at) => path[at] === key);

/** @param document what the places are looked up in */
export function createProblems(document: ConfigDocument): Problems {
  const found: { path: KeyPath; problem: Problem }[] = [];
  const hidden = new Map<string, string>();
  const shown = (message: string): string =>
    [...hidden].reduce((text, [value, variable]) => text.replaceAll(value, () => `\${${variable}}`), message);
  return {
    hide(variable, value) {
      if (value.length >= MIN_HIDDEN) hidden.set(value, variable);
    },
    add(path, message) {
      if (found.some((one) => one.path.length === path.length && startsWith(one.path, path))) return;
      found.push({ path, problem: { path: pathText(path), ...document.placeOf(path), message: shown(message) } });
    },
    has: (path) =>
      found.some((one) => startsWith(one.path, path) || (one.path.length > 0 && startsWith(path, one.path))),
    all: () => found.map(({ problem }) => problem).sort((a, b) => a.line - b.line || a.column - b.column),
  };
}

/** `tenon.yaml:4:3: server.prot unknown property; did you mean "port"?` */
export const problemLine = (file: string, { line, column, path, message }: Problem): string =>
  `${file}:${line}:${column}: ${path === "" ? "" : `${path}: `}${message}`;

/** The error that says all of them. */
export function problemsError(file: string, problems: readonly Problem[]): CommandError {
  const count = problems.length === 1 ? "one problem" : `${problems.length} problems`;
  return new CommandError(
    {
      what: `${file} has ${count}; nothing is served`,
      why: problems.map((problem) => problemLine(file, problem)),
      todo: `correct ${problems.length === 1 ? "it" : "them"}; tenon serve --config ${file} --check looks without serving`,
    },
    { code: "invalid_config" },
  );
}
