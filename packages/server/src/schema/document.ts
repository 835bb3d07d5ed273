import {
  ConfigError,
  compilePattern,
  didYouMean,
  expansion,
  isRecord,
  isRiskyPattern,
  type Json,
  JsonError,
  type JsonObject,
  resolvePointer,
  subschemas,
  toJson,
} from "@tenon/core";

/** Levels and nodes a schema document may have: far above what people write, low enough to bound the work it causes. */
const MAX_DEPTH = 64;
const MAX_NODES = 20_000;
/** Subschemas one value may be checked against when references are followed, before checking runs under a time limit. */
const MAX_EXPANSION = 10_000;

const DIALECT = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

const MANY = ["anyOf", "oneOf", "allOf", "prefixItems"];
const NAMED = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/** A JSON Schema document that may be used, and what is known about the work it causes. */
export interface CheckedDocument {
  readonly schema: JsonObject;
  /** Checking a value may take long (recursion through `anyOf`, `uniqueItems`, a risky pattern): bound its time. */
  readonly costly: boolean;
}

/** A document as JSON: what JSON cannot carry, such as Infinity, is in no schema. */
function asJson(document: object, where: string): JsonObject {
  try {
    return toJson(document, where) as JsonObject; // an object stays one
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new ConfigError(error.message, { code: "schema", data: error.data, cause: error });
  }
}

/**
 * Checks a JSON Schema (2020-12) before anybody relies on it: dialect, local references, legal types and patterns, bounded
 * size. `int` becomes `integer`; format names are kept and mean nothing here; nothing is ever fetched.
 * @param where how the document is called in an error, such as `tool refund: input`
 * @throws ConfigError `code: "schema"` naming the path inside the document
 */
export function checkDocument(document: unknown, where: string): CheckedDocument {
  const refuse: (path: string, problem: string) => never = (path, problem) => {
    throw new ConfigError(`${where}${path}: ${problem}`, { code: "schema", data: { path } });
  };
  if (!isRecord(document)) refuse("", `expected a JSON Schema object, got ${JSON.stringify(document)}`);
  let depthLeft = MAX_DEPTH * 4;
  for (let probe: unknown = document; isRecord(probe); probe = Object.values(probe).find(isRecord)) {
    if (--depthLeft < 0) refuse("", `nested deeper than ${MAX_DEPTH} levels`);
  }
  const root = asJson(document, where);
  if (typeof root.$schema === "string" && !DIALECT.test(root.$schema)) {
    refuse(".$schema", `the dialect ${root.$schema} is not supported; write JSON Schema 2020-12`);
  }
  let nodes = 0;
  let costly = false;

  const checkType = (node: JsonObject, path: string): void => {
    const named: Json[] = Array.isArray(node.type) ? node.type : [node.type ?? null];
    const fixed = named.map((type) => (type === "int" ? "integer" : type));
    for (const type of fixed) {
      if (typeof type === "string" && TYPES.includes(type)) continue;
      const near = typeof type === "string" ? didYouMean(type, TYPES) : undefined;
      refuse(
        `${path}.type`,
        `${JSON.stringify(type)} is no type; ${near ? `did you mean "${near}"?` : `use ${TYPES.join(", ")}`}`,
      );
    }
    node.type = Array.isArray(node.type) ? fixed : (fixed[0] ?? null);
  };
  const checkPattern = (pattern: unknown, path: string): void => {
    if (typeof pattern !== "string") refuse(path, "a pattern is a string");
    try {
      compilePattern(pattern);
    } catch (cause) {
      refuse(
        path,
        `${JSON.stringify(pattern)} is no regular expression (${cause instanceof Error ? cause.message : "?"})`,
      );
    }
    if (isRiskyPattern(pattern)) costly = true;
  };
  const checkReference = (reference: unknown, path: string): void => {
    if (typeof reference !== "string") refuse(path, "a reference is a string");
    if (!reference.startsWith("#")) {
      refuse(
        path,
        `${JSON.stringify(reference)} points outside the document; only local references (#/…) are followed`,
      );
    }
    if (!resolvePointer(root, reference)) {
      refuse(path, `${JSON.stringify(reference)} points at nothing in the document`);
    }
  };
  const checkLists = (node: JsonObject, path: string): void => {
    if (
      "required" in node &&
      !(Array.isArray(node.required) && node.required.every((name) => typeof name === "string"))
    ) {
      refuse(`${path}.required`, "expected a list of property names");
    }
    if ("enum" in node && !Array.isArray(node.enum)) refuse(`${path}.enum`, "expected a list of values");
    for (const keyword of MANY) {
      if (keyword in node && !(Array.isArray(node[keyword]) && node[keyword].length > 0)) {
        refuse(`${path}.${keyword}`, "expected a list of schemas that is not empty");
      }
    }
    for (const keyword of NAMED) {
      if (keyword in node && !isRecord(node[keyword])) refuse(`${path}.${keyword}`, "expected an object of schemas");
    }
  };
  const check = (node: Json, path: string, depth: number): void => {
    if (typeof node === "boolean") return;
    if (!isRecord(node)) refuse(path, `expected a schema, got ${JSON.stringify(node)}`);
    const schema = node as JsonObject; // inside JSON
    if (depth > MAX_DEPTH) refuse(path, `nested deeper than ${MAX_DEPTH} levels`);
    if (++nodes > MAX_NODES) refuse(path, `more than ${MAX_NODES} subschemas`);
    if ("type" in schema) checkType(schema, path);
    if ("pattern" in schema) checkPattern(schema.pattern, `${path}.pattern`);
    if (isRecord(schema.patternProperties)) {
      for (const pattern of Object.keys(schema.patternProperties)) checkPattern(pattern, `${path}.patternProperties`);
    }
    if ("$ref" in schema) checkReference(schema.$ref, `${path}.$ref`);
    if ("$dynamicRef" in schema) refuse(`${path}.$dynamicRef`, "dynamic references are not supported; use $ref");
    if (depth > 0 && "$id" in schema) refuse(`${path}.$id`, "only the whole document may have an $id");
    if (schema.uniqueItems === true) costly = true;
    checkLists(schema, path);
    for (const [name, child] of subschemas(schema)) check(child, `${path}.${name}`, depth + 1);
  };
  check(root, "", 0);
  const { $schema: _dialect, $id: _id, ...schema } = root;
  return { schema, costly: costly || expansion(schema) > MAX_EXPANSION };
}
