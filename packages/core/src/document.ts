/**
 * `@tenon/core/internal/document`: configurations as text that people write, JSON or YAML, whose errors say where. It is a module
 * of its own, so that only those who read one load the parsers.
 */
import * as jsonc from "jsonc-parser";
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import { ConfigError, messageOf } from "./errors.ts";
import { isRecord } from "./json.ts";
import { didYouMean } from "./options.ts";
import { shownValue } from "./text.ts";

export { type EnvironmentVariable, expand, readEnvironment } from "./variables.ts";

/** Where something stands in a configuration: the keys that lead to it. */
export type KeyPath = readonly (string | number)[];

/** A configuration as data that knows its lines. */
export interface ConfigDocument {
  /** How the file is called in messages. */
  readonly file: string;
  readonly value: unknown;
  /** The 1-based line of a key, or of the nearest key around it. */
  lineOf(path: KeyPath): number;
  /** The same with the 1-based column. */
  placeOf(path: KeyPath): Place;
}

/** A place in a text, both counted from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** `mcpServers.github.env.TOKEN`; a key that is no plain word stands in brackets. */
export function pathText(path: KeyPath): string {
  return path
    .map((key, index) => {
      if (typeof key === "number") return `[${key}]`;
      if (!/^[\w-]+$/.test(key)) return `[${JSON.stringify(key)}]`;
      return index === 0 ? key : `.${key}`;
    })
    .join("");
}

/** The error for something wrong in a configuration: file, line, key, problem. */
export function configError(
  document: Pick<ConfigDocument, "file" | "lineOf">,
  path: KeyPath,
  problem: string,
  code = "invalid_config",
  cause?: unknown,
): ConfigError {
  const line = document.lineOf(path);
  const key = pathText(path);
  const data = { file: document.file, line, key };
  const at = key === "" ? "" : `${key} `;
  return new ConfigError(`${document.file}:${line}: ${at}${problem}`, {
    code,
    data,
    ...(cause !== undefined && { cause }),
  });
}

/** Refuses a key nobody reads when it is near one that is read; tells whether it is a stranger. */
export function checkKey(document: ConfigDocument, path: KeyPath, key: string, known: readonly string[]): boolean {
  if (known.includes(key)) return true;
  const near = didYouMean(key, known);
  if (near) throw configError(document, [...path, key], `is no known key; did you mean "${near}"?`, "unknown_option");
  return false;
}

/** Where each line of a text begins. */
function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

function placeAt(starts: readonly number[], offset: number): Place {
  let low = 0;
  for (let high = starts.length - 1; low < high; ) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
}

function define(object: Record<string, unknown>, key: string, value: unknown): void {
  // so that a key named "__proto__" stays a key
  Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
}

function parseJson(text: string, file: string): ConfigDocument {
  const errors: jsonc.ParseError[] = [];
  const starts = lineStarts(text);
  const root = jsonc.parseTree(text, errors, { allowTrailingComma: true, disallowComments: false });
  const at = (offset: number, path: KeyPath, problem: string) =>
    configError({ file, lineOf: () => placeAt(starts, offset).line }, path, problem);
  const [error] = errors;
  if (error || !root) {
    const reason = error
      ? jsonc
          .printParseErrorCode(error.error)
          .replace(/([a-z])([A-Z])/g, "$1 $2")
          .toLowerCase()
      : "it is empty";
    throw at(
      error?.offset ?? 0,
      [],
      `is no JSON: ${reason} near ${shownValue(text.slice(error?.offset ?? 0).slice(0, 20))}`,
    );
  }
  const places = new Map<string, Place>();
  const read = (node: jsonc.Node, path: KeyPath): unknown => {
    const { offset } = node.parent?.type === "property" ? node.parent : node;
    places.set(JSON.stringify(path), placeAt(starts, offset));
    if (node.type === "array") return (node.children ?? []).map((item, index) => read(item, [...path, index]));
    if (node.type !== "object") return node.value;
    const object: Record<string, unknown> = {};
    for (const { children = [], offset } of node.children ?? []) {
      const [name, value] = children;
      const key = String(name?.value);
      if (!value) throw at(offset, [...path, key], "has no value");
      if (Object.hasOwn(object, key)) throw at(offset, [...path, key], "is there twice");
      define(object, key, read(value, [...path, key]));
    }
    return object;
  };
  const value = read(root, []);
  return located(file, value, places);
}

function located(file: string, value: unknown, places: ReadonlyMap<string, Place>): ConfigDocument {
  const placeOf = (path: KeyPath): Place => {
    for (let length = path.length; length >= 0; length--) {
      const place = places.get(JSON.stringify(path.slice(0, length)));
      if (place) return place;
    }
    return { line: 1, column: 1 };
  };
  return { file, value, placeOf, lineOf: (path) => placeOf(path).line };
}

function parseYaml(text: string, file: string): ConfigDocument {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false });
  const placeOf = (offset = 0): Place => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const [error] = document.errors;
  if (error) {
    throw configError(
      { file, lineOf: () => placeOf(error.pos[0]).line },
      [],
      `is no YAML: ${error.message}`,
      "invalid_config",
      error,
    );
  }
  const places = new Map<string, Place>();
  /** What is around the place that is looked at, for aliases that lead back there. */
  const around: Node[] = [];
  const walk = (node: Node | null | undefined, path: KeyPath): void => {
    if (isAlias(node)) {
      const meant = node.resolve(document);
      if (!meant || !around.includes(meant)) return;
      const at = { file, lineOf: () => placeOf(node.range?.[0]).line };
      throw configError(at, path, `is *${node.source}, which it is itself a part of; write out what is meant`);
    }
    if (node) around.push(node);
    step(node, path);
    around.pop();
  };
  const step = (node: Node | null | undefined, path: KeyPath): void => {
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        const name = isScalar(key) ? String(key.value) : String(key);
        const inner = [...path, name];
        places.set(JSON.stringify(inner), placeOf(isScalar(key) ? key.range?.[0] : undefined));
        walk(value as Node | null, inner); // a parsed document holds nodes only
      }
    } else if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) {
        const inner = [...path, index];
        const one = item as Node; // the same
        places.set(JSON.stringify(inner), placeOf(one.range?.[0]));
        walk(one, inner);
      }
    }
  };
  walk(document.contents, []);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (cause) {
    const reason = messageOf(cause);
    throw configError({ file, lineOf: () => 1 }, [], `is no YAML: ${reason}`, "invalid_config", cause);
  }
  return located(file, value, places);
}

/**
 * Reads the text of a configuration: JSON with comments and trailing commas, or YAML.
 * @param wanted what it must hold, for the message: `"an object with mcpServers"`
 * @throws ConfigError `invalid_config` with file and line
 */
export function parseDocumentText(
  given: string,
  file: string,
  format: "json" | "yaml" | undefined,
  wanted: string,
): ConfigDocument {
  const text = given.replace(/^\ufeff/, "");
  const yaml = format === undefined ? /\.ya?ml$/i.test(file) || !/^\s*(?:[{[]|\/[/*]|$)/.test(text) : format === "yaml";
  const document = yaml ? parseYaml(text, file) : parseJson(text, file);
  if (!isRecord(document.value)) {
    throw configError(document, [], `must be ${wanted}, got ${shownValue(document.value)}`);
  }
  return document;
}
