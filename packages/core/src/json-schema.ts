import { isRecord, type Json, type JsonObject } from "./json.ts";
import type { SchemaIssue } from "./schema.ts";

/** Levels in which an `$anchor` is looked for. */
const MAX_DEPTH = 64;
/** Errors that are looked at. */
const MAX_ERRORS = 1_000;
/** One issue per wrong field is plenty; a list of ten thousand wrong items must not become ten thousand objects. */
const MAX_ISSUES = 50;
/** Characters of the values that an enum allows, in a message. */
const MAX_LIST = 1_000;

const ONE = new Set(
  "additionalProperties unevaluatedProperties propertyNames items contains unevaluatedItems not if then else contentSchema".split(
    " ",
  ),
);
const MANY = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const NAMED = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);

/** The schemas directly inside a JSON Schema, each with its place, for example `properties.a` or `anyOf[0]`. */
export function subschemas(node: JsonObject): Array<[path: string, child: Json]> {
  const found: Array<[string, Json]> = [];
  for (const [keyword, value] of Object.entries(node)) {
    if (ONE.has(keyword)) found.push([keyword, value]);
    else if (MANY.has(keyword) && Array.isArray(value))
      value.forEach((item, i) => void found.push([`${keyword}[${i}]`, item]));
    else if (NAMED.has(keyword) && isRecord(value)) {
      // a record inside JSON
      for (const [name, item] of Object.entries(value as JsonObject)) found.push([`${keyword}.${name}`, item]);
    }
  }
  return found;
}

/** The subschema that names itself with `$anchor`. */
function anchored(node: JsonObject, name: string, depth = 0): JsonObject | undefined {
  if (node.$anchor === name) return node;
  if (depth > MAX_DEPTH) return undefined;
  for (const [, child] of subschemas(node)) {
    const found = isRecord(child) ? anchored(child as JsonObject, name, depth + 1) : undefined; // inside JSON
    if (found) return found;
  }
  return undefined;
}

/** The subschema a local reference (`#`, `#/…`, `#anchor`) points at, or undefined. */
export function resolvePointer(root: JsonObject, reference: string): JsonObject | undefined {
  if (reference === "#") return root;
  let path: string;
  try {
    path = decodeURIComponent(reference.slice(1));
  } catch {
    return undefined;
  }
  if (!path.startsWith("/")) return anchored(root, path);
  let node: Json | undefined = root;
  for (const part of path.slice(1).split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(node)) node = node[Number(key)];
    else if (isRecord(node) && Object.hasOwn(node, key))
      node = node[key] as Json; // inside JSON
    else return undefined;
  }
  return isRecord(node) ? (node as JsonObject) : undefined; // inside JSON
}

/** Subschemas visited when references are followed; infinite for a document that refers to itself. */
export function expansion(root: JsonObject): number {
  const known = new Map<JsonObject, number>();
  const open = new Set<JsonObject>();
  const count = (node: JsonObject): number => {
    const before = known.get(node);
    if (before !== undefined) return before;
    if (open.has(node)) return Number.POSITIVE_INFINITY;
    open.add(node);
    let total = 1;
    for (const [path, child] of subschemas(node)) {
      // definitions count where they are used
      if (isRecord(child) && !path.startsWith("$defs.") && !path.startsWith("definitions."))
        total += count(child as JsonObject); // inside JSON
    }
    const target = typeof node.$ref === "string" ? resolvePointer(root, node.$ref) : undefined;
    if (target) total += count(target);
    open.delete(node);
    known.set(node, total);
    return total;
  };
  return count(root);
}

/** What Ajv says about one broken keyword; `schema` and `data` are there with its option `verbose`. */
export interface AjvError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly schemaPath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string | undefined;
  readonly schema?: unknown;
  readonly data?: unknown;
}

function pathOf(error: AjvError): PropertyKey[] {
  const parts = error.instancePath.split("/").slice(1);
  const path: PropertyKey[] = parts.map((part) => {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    return /^\d+$/.test(key) ? Number(key) : key;
  });
  const { params, keyword } = error;
  const missing = keyword === "required" ? params.missingProperty : undefined;
  const extra = keyword === "additionalProperties" ? params.additionalProperty : undefined;
  for (const name of [missing, extra]) if (typeof name === "string") path.push(name);
  return path;
}

/** The values of an enum; of a long one the first, so that whoever reads the message can still read it. */
function oneOf(values: readonly unknown[]): string {
  const shown: string[] = [];
  let length = 0;
  for (const value of values) {
    const text = JSON.stringify(value) ?? "undefined";
    if (shown.length > 0 && length + text.length > MAX_LIST) break;
    shown.push(text.length > MAX_LIST ? `${text.slice(0, MAX_LIST)}…` : text);
    length += text.length + 2;
  }
  const left = values.length - shown.length;
  return shown.join(", ") + (left > 0 ? ` and ${left} more` : "");
}

function messageOf({ keyword, params, message }: AjvError): string {
  switch (keyword) {
    case "required":
      return "required, but missing";
    case "additionalProperties":
      return "unknown property";
    case "type":
      return `must be ${Array.isArray(params.type) ? params.type.join(" or ") : String(params.type)}`;
    case "enum":
      return `must be one of ${oneOf(Array.isArray(params.allowedValues) ? params.allowedValues : [])}`;
    case "const":
      return `must be ${JSON.stringify(params.allowedValue)}`;
    case "oneOf":
      return Array.isArray(params.passingSchemas)
        ? "fits several of the alternatives, but must fit exactly one"
        : "fits none of the alternatives";
    case "anyOf":
      return "fits none of the alternatives";
    case "not":
      return "is a value that is ruled out";
    case "false schema":
      return "is not allowed here";
    default:
      return message ?? `breaks "${keyword}"`;
  }
}

function typeFits(type: unknown, value: unknown): boolean {
  const is: Record<string, boolean> = {
    null: value === null,
    array: Array.isArray(value),
    object: isRecord(value),
    string: typeof value === "string",
    boolean: typeof value === "boolean",
    number: typeof value === "number",
    integer: Number.isInteger(value),
  };
  return type === undefined || [type].flat().some((name) => typeof name === "string" && is[name] === true);
}

/** The values a property may have in one alternative, where the alternative names them. */
function namedValues(branch: JsonObject | undefined, key: string): readonly unknown[] | undefined {
  const properties = branch?.properties;
  const property = isRecord(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined;
  if (!isRecord(property)) return undefined;
  if ("const" in property) return [property.const];
  return Array.isArray(property.enum) ? property.enum : undefined;
}

interface Branch {
  readonly schema: JsonObject | undefined;
  readonly errors: readonly AjvError[];
}

/**
 * What a failed `anyOf` or `oneOf` comes down to: the errors of the alternatives that were meant (by type, or by a property
 * whose named values tell the alternatives apart), or one issue that says what would do.
 */
function narrowed(
  error: AjvError,
  branches: readonly Branch[],
): { errors: readonly AjvError[] } | { issue: SchemaIssue } | undefined {
  const { data } = error;
  const typed = branches.filter(({ schema }) => typeFits(schema?.type, data));
  const meant = typed.length > 0 ? typed : branches;
  if (isRecord(data)) {
    const keys = Object.keys(isRecord(meant[0]?.schema?.properties) ? meant[0].schema.properties : {});
    const tag = keys.find((key) => meant.every(({ schema }) => namedValues(schema, key) !== undefined));
    if (tag !== undefined && meant.length > 1) {
      const chosen = meant.filter(({ schema }) => namedValues(schema, tag)?.includes(data[tag]));
      if (chosen.length > 0) return { errors: chosen.flatMap((branch) => branch.errors) };
      const values = [...new Set(meant.flatMap(({ schema }) => namedValues(schema, tag) ?? []))];
      const missing = Object.hasOwn(data, tag) ? "" : "required, but missing; ";
      return { issue: { path: [...pathOf(error), tag], message: `${missing}must be one of ${oneOf(values)}` } };
    }
    const needs = meant.map((branch) =>
      branch.errors.map((inner) =>
        inner.keyword === "required" && inner.instancePath === error.instancePath
          ? String(inner.params.missingProperty)
          : undefined,
      ),
    );
    if (needs.length > 1 && needs.every((names) => names.length > 0 && !names.includes(undefined))) {
      const ways = needs.map((names) => names.map((name) => JSON.stringify(name)).join(" and "));
      return { issue: { path: pathOf(error), message: `needs ${ways.join(" or ")}` } };
    }
  }
  return meant.length < branches.length ? { errors: meant.flatMap((branch) => branch.errors) } : undefined;
}

/**
 * Ajv's errors as issues, one per place. Ajv repeats a failed `anyOf` as the errors of all its alternatives; here only
 * those of the alternatives that were meant remain, where that can be told.
 * @param all in Ajv's order, with its options `allErrors` and, for the choice between alternatives, `verbose`
 * @param root the document, to follow references in alternatives
 */
export function ajvIssues(all: readonly AjvError[], root?: JsonObject): SchemaIssue[] {
  const errors = all.slice(0, MAX_ERRORS);
  const dropped = new Set<AjvError>();
  const issues: SchemaIssue[] = [];
  // the innermost alternatives come first in Ajv's list
  for (const error of errors) {
    const alternatives = error.keyword === "anyOf" || error.keyword === "oneOf" ? error.schema : undefined;
    if (!Array.isArray(alternatives) || dropped.has(error)) continue;
    if (Array.isArray(error.params.passingSchemas)) continue;
    const inside = (inner: AjvError, place: string) =>
      inner !== error && !dropped.has(inner) && inner.schemaPath.startsWith(`${place}/`);
    const branches = alternatives.map((schema: unknown, i): Branch => {
      const reference = isRecord(schema) && typeof schema.$ref === "string" ? schema.$ref : undefined;
      const target = reference !== undefined && root ? resolvePointer(root, reference) : schema;
      const places = [`${error.schemaPath}/${i}`, ...(reference === undefined ? [] : [reference])];
      const own = errors.filter(
        (inner) => inner.instancePath.startsWith(error.instancePath) && places.some((place) => inside(inner, place)),
      );
      return { schema: isRecord(target) ? (target as JsonObject) : undefined, errors: own }; // inside a JSON document
    });
    const outcome = narrowed(error, branches);
    if (!outcome) continue;
    const kept = new Set("errors" in outcome ? outcome.errors : []);
    if ("errors" in outcome && kept.size === 0) continue;
    for (const branch of branches) for (const inner of branch.errors) if (!kept.has(inner)) dropped.add(inner);
    if ("issue" in outcome) {
      dropped.add(error);
      issues.push(outcome.issue);
    }
  }
  const wrapping = new Set(["anyOf", "oneOf", "if", "not"]);
  const left = errors.filter((error) => !dropped.has(error));
  const telling = left.filter((error) => !wrapping.has(error.keyword) || Array.isArray(error.params.passingSchemas));
  const chosen = telling.length > 0 || issues.length > 0 ? telling : left;
  const seen = new Map<string, SchemaIssue>(issues.map((issue) => [JSON.stringify(issue.path), issue]));
  for (const error of chosen) {
    if (seen.size >= MAX_ISSUES) break;
    const issue = { message: messageOf(error), path: pathOf(error) };
    const place = JSON.stringify(issue.path);
    const other = seen.get(place);
    if (!other) seen.set(place, issue);
    else if (!other.message.includes(issue.message))
      seen.set(place, { ...other, message: `${other.message} or ${issue.message.replace(/^must be /, "")}` });
  }
  return [...seen.values()];
}
