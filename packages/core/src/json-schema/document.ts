import { isRecord, type Json, type JsonObject } from "../json.ts";

/** Levels in which an `$anchor` is looked for. */
const MAX_DEPTH = 64;
/** Characters of a reference that is still followed. */
const MAX_REFERENCE = 1_000;

const ONE = new Set(
  "additionalProperties additionalItems unevaluatedProperties propertyNames items contains unevaluatedItems not if then else contentSchema".split(
    " ",
  ),
);
/** Keywords whose value is a list of schemas. */
export const SCHEMA_LISTS: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
/** Keywords whose value is an object of schemas. */
export const SCHEMA_MAPS: ReadonlySet<string> = new Set(
  "properties patternProperties $defs definitions dependentSchemas dependencies".split(" "),
);

/**
 * The schemas directly inside a JSON Schema of any dialect, each with its place, for example `properties.a` or `anyOf[0]`.
 */
export function subschemas(node: JsonObject): Array<[path: string, child: Json]> {
  const found: Array<[string, Json]> = [];
  for (const [keyword, value] of Object.entries(node)) {
    // up to 2019-09, `items` may be a list
    if (Array.isArray(value) && (SCHEMA_LISTS.has(keyword) || keyword === "items"))
      value.forEach((item, i) => void found.push([`${keyword}[${i}]`, item]));
    else if (ONE.has(keyword)) found.push([keyword, value]);
    else if (SCHEMA_MAPS.has(keyword) && isRecord(value)) {
      for (const [name, item] of Object.entries(value)) {
        // up to draft-07, a dependency may be a list of names
        if (keyword !== "dependencies" || !Array.isArray(item)) found.push([`${keyword}.${name}`, item]);
      }
    }
  }
  return found;
}

/** The subschemas of a document that have names, found once per document. */
const anchors = new WeakMap<object, ReadonlyMap<string, JsonObject>>();

function anchorsOf(root: JsonObject): ReadonlyMap<string, JsonObject> {
  const known = anchors.get(root);
  if (known) return known;
  const found = new Map<string, JsonObject>();
  const seen = new Set<object>();
  const look = (node: JsonObject, depth: number): void => {
    if (depth > MAX_DEPTH || seen.has(node)) return;
    seen.add(node);
    // up to draft-07, an anchor is an $id
    const old = typeof node.$id === "string" && node.$id.startsWith("#") ? node.$id.slice(1) : undefined;
    for (const name of [node.$anchor, node.$dynamicAnchor, old]) {
      if (typeof name === "string" && !found.has(name)) found.set(name, node);
    }
    for (const [, child] of subschemas(node)) if (isRecord(child)) look(child, depth + 1);
  };
  look(root, 0);
  anchors.set(root, found);
  return found;
}

/** The subschema a local reference (`#`, `#/…`, `#anchor`) points at; undefined for other addresses, and where there is none. */
export function resolvePointer(document: unknown, reference: unknown): JsonObject | boolean | undefined {
  if (!isRecord(document) || typeof reference !== "string") return undefined;
  if (!reference.startsWith("#") || reference.length > MAX_REFERENCE) return undefined;
  const root = document as JsonObject; // a JSON Schema document is JSON
  let path: string;
  try {
    path = decodeURIComponent(reference.slice(1));
  } catch {
    return undefined;
  }
  if (path === "") return root;
  if (!path.startsWith("/")) return anchorsOf(root).get(path);
  let node: Json | undefined = root;
  for (const part of path.slice(1).split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, key)) return undefined;
    node = Array.isArray(node) ? node[Number(key)] : node[key];
  }
  if (typeof node === "boolean") return node;
  return isRecord(node) ? node : undefined;
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
      if (isRecord(child) && !path.startsWith("$defs.") && !path.startsWith("definitions.")) total += count(child);
    }
    const target = resolvePointer(root, node.$ref);
    if (isRecord(target)) total += count(target);
    open.delete(node);
    known.set(node, total);
    return total;
  };
  return count(root);
}
