import { ConfigError, isRecord, messageOf } from "@tenon/core";
import { didYouMean, shownValue } from "@tenon/core/internal";
import * as jsonc from "jsonc-parser";
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";

/** Where something stands in a configuration: the keys that lead to it. */
export type KeyPath = readonly (string | number)[];

/** A configuration as data that knows its lines. */
export interface ConfigDocument {
  /** How the file is called in messages. */
  readonly file: string;
  readonly value: unknown;
  /** The 1-based line of a key, or of the nearest key around it. */
  lineOf(path: KeyPath): number;
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

function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let i = 0; i < offset && i < text.length; i++) if (text.charCodeAt(i) === 10) line++;
  return line;
}

function define(object: Record<string, unknown>, key: string, value: unknown): void {
  // so that a key named "__proto__" stays a key
  Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
}

function parseJson(text: string, file: string): ConfigDocument {
  const errors: jsonc.ParseError[] = [];
  const root = jsonc.parseTree(text, errors, { allowTrailingComma: true, disallowComments: false });
  const at = (offset: number, path: KeyPath, problem: string) =>
    configError({ file, lineOf: () => lineAt(text, offset) }, path, problem);
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
  const lines = new Map<string, number>();
  const read = (node: jsonc.Node, path: KeyPath): unknown => {
    lines.set(JSON.stringify(path), lineAt(text, node.parent?.type === "property" ? node.parent.offset : node.offset));
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
  return { file, value, lineOf: (path) => nearest(lines, path) };
}

function nearest(lines: ReadonlyMap<string, number>, path: KeyPath): number {
  for (let length = path.length; length >= 0; length--) {
    const line = lines.get(JSON.stringify(path.slice(0, length)));
    if (line !== undefined) return line;
  }
  return 1;
}

function parseYaml(text: string, file: string): ConfigDocument {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false });
  const lineOf = (offset: number | undefined): number =>
    Math.max(1, offset === undefined ? 1 : counter.linePos(offset).line);
  const [error] = document.errors;
  if (error) {
    throw configError(
      { file, lineOf: () => lineOf(error.pos[0]) },
      [],
      `is no YAML: ${error.message}`,
      "invalid_config",
      error,
    );
  }
  const lines = new Map<string, number>();
  const walk = (node: Node | null | undefined, path: KeyPath): void => {
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        const name = isScalar(key) ? String(key.value) : String(key);
        const inner = [...path, name];
        lines.set(JSON.stringify(inner), lineOf(isScalar(key) ? key.range?.[0] : undefined));
        walk(value as Node | null, inner); // a parsed document holds nodes only
      }
    } else if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) walk(item as Node, [...path, index]); // the same
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
  return { file, value, lineOf: (path) => nearest(lines, path) };
}

/**
 * Reads the text of a configuration: JSON with comments and trailing commas, or YAML.
 * @throws ConfigError `invalid_config` with file and line
 */
export function parseDocumentText(given: string, file: string, format: "json" | "yaml" | undefined): ConfigDocument {
  const text = given.replace(/^\ufeff/, "");
  const yaml = format === undefined ? /\.ya?ml$/i.test(file) || !/^\s*(?:[{[]|\/[/*]|$)/.test(text) : format === "yaml";
  const document = yaml ? parseYaml(text, file) : parseJson(text, file);
  if (!isRecord(document.value)) {
    throw configError(document, [], `must be an object with mcpServers, got ${shownValue(document.value)}`);
  }
  return document;
}
