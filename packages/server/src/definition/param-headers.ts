import { ConfigError, isRecord } from "@tenon/core";

/** A property of a tool's input that callers repeat in the header `Mcp-Param-{name}`. */
export interface ParamHeader {
  /** Property names from the arguments' root. */
  readonly path: readonly string[];
  readonly name: string;
  readonly numeric: boolean;
}

/** What disagrees, as the error's `data.mismatch` says it. */
export interface HeaderMismatch {
  readonly header: string;
  readonly body: string;
}

const KEY = "x-mcp-header";
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TYPES: ReadonlySet<unknown> = new Set(["string", "integer", "boolean"]);
const PREFIX = "=?base64?";
const SUFFIX = "?=";
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const DECIMAL = /^-?\d+(\.\d+)?$/;

/** Keywords that hold data, not schemas. */
const DATA: ReadonlySet<string> = new Set(["default", "const", "enum", "examples"]);

const known = new WeakMap<object, readonly ParamHeader[]>();
const none: readonly ParamHeader[] = [];

/**
 * Reads the `x-mcp-header` declarations of a tool's input schema (2026-07-28, Streamable HTTP, custom headers) and keeps them
 * for {@link paramHeadersOf}.
 * @throws ConfigError naming the property: only strings, integers and booleans reachable through `properties`, with names
 * that are header tokens and differ in more than case
 */
export function readParamHeaders(schema: object, where: string): void {
  const found: ParamHeader[] = [];
  const bad = (path: readonly string[], problem: string): ConfigError =>
    new ConfigError(`${where}: ${path.join(".") || "the input"}: ${KEY} ${problem}`, { code: "param_header" });
  const visit = (node: unknown, path: readonly string[], reachable: boolean): void => {
    if (Array.isArray(node)) {
      for (const one of node) visit(one, path, false);
      return;
    }
    if (!isRecord(node)) return;
    if (Object.hasOwn(node, KEY)) {
      const name = node[KEY];
      if (!reachable || path.length === 0) throw bad(path, "is allowed only on properties of properties");
      if (typeof name !== "string" || !TOKEN.test(name)) throw bad(path, "must be a header token, such as Region");
      if (!TYPES.has(node.type)) throw bad(path, `needs type string, integer or boolean; it is ${String(node.type)}`);
      if (found.some((other) => other.name.toLowerCase() === name.toLowerCase()))
        throw bad(path, `"${name}" is used twice`);
      found.push({ path, name, numeric: node.type === "integer" });
    }
    for (const [keyword, child] of Object.entries(node)) {
      if (keyword === "properties" && isRecord(child)) {
        for (const [name, property] of Object.entries(child)) visit(property, [...path, name], reachable);
      } else if (!DATA.has(keyword)) visit(child, path, false);
    }
  };
  visit(schema, [], true);
  if (found.length > 0) known.set(schema, found);
}

/** The declarations that {@link readParamHeaders} found in this schema. */
export function paramHeadersOf(schema: object): readonly ParamHeader[] {
  return known.get(schema) ?? none;
}

/** A header's value, decoded where it is `=?base64?…?=`; undefined when that is malformed. */
export function decodeHeader(value: string): string | undefined {
  if (!(value.startsWith(PREFIX) && value.endsWith(SUFFIX))) return value;
  const text = value.slice(PREFIX.length, -SUFFIX.length);
  if (!BASE64.test(text)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(text, "base64"));
  } catch {
    return undefined;
  }
}

function valueAt(root: unknown, path: readonly string[]): unknown {
  let node = root;
  for (const name of path) {
    if (!isRecord(node) || !Object.hasOwn(node, name)) return undefined;
    node = node[name];
  }
  return node;
}

/**
 * Compares headers with arguments: a value in the body must be repeated in its header, integers compare as numbers.
 * @param header reads a header by lower-case name
 */
export function checkParamHeaders(
  declared: readonly ParamHeader[],
  args: unknown,
  header: (name: string) => string | null | undefined,
): HeaderMismatch | undefined {
  for (const { path, name, numeric } of declared) {
    const value = valueAt(args, path);
    // absent and null need no header; anything but a plain value is for the schema to refuse
    if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") continue;
    const field = `Mcp-Param-${name}`;
    const about = `the body carries ${path.join(".")}=${JSON.stringify(value)}`;
    const given = header(field.toLowerCase());
    if (given === null || given === undefined) {
      return { header: field, body: `${about} but the ${field} header is absent` };
    }
    const decoded = decodeHeader(given);
    if (decoded === undefined) {
      return { header: field, body: `the ${field} header carries an invalid Base64 value` };
    }
    const equal =
      numeric && typeof value === "number" && DECIMAL.test(decoded)
        ? Number(decoded) === value
        : decoded === String(value);
    if (!equal) return { header: field, body: `${about} but the ${field} header says ${JSON.stringify(decoded)}` };
  }
  return undefined;
}
