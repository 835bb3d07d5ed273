import { ConfigError, isRecord, type JsonObject } from "@tenon/core";
import { JsonError, subschemas, surveySchema, toJson } from "@tenon/core/internal";

/** Levels of objects in a document that are looked at before anything walks it. */
const MAX_LEVELS = 256;

/** A document as JSON: what JSON cannot carry, such as Infinity, is in no schema. */
function asJson(document: object, where: string): JsonObject {
  try {
    return toJson(document, where) as JsonObject; // an object stays one
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new ConfigError(error.message, { code: "schema", data: error.data, cause: error });
  }
}

/** `int` is what many write for `integer`. The document is changed in place. */
function renameInt(node: JsonObject, levels = MAX_LEVELS): void {
  if (node.type === "int") node.type = "integer";
  if (Array.isArray(node.type)) node.type = node.type.map((type) => (type === "int" ? "integer" : type));
  if (levels === 0) return;
  for (const [, child] of subschemas(node)) if (isRecord(child)) renameInt(child, levels - 1);
}

/**
 * Checks a JSON Schema (2020-12) before anybody relies on it: dialect, local references, legal types and patterns, bounded
 * size. `int` becomes `integer`; format names are kept and mean nothing here; nothing is ever fetched.
 * @param where how the document is called in an error, such as `tool refund: input`
 * @returns a copy of the document without `$schema` and `$id`
 * @throws ConfigError `code: "schema"` naming the path inside the document
 */
export function checkDocument(document: unknown, where: string): JsonObject {
  const refuse: (path: string, problem: string) => never = (path, problem) => {
    throw new ConfigError(`${where}${path}: ${problem}`, { code: "schema", data: { path } });
  };
  if (!isRecord(document)) refuse("", `expected a JSON Schema object, got ${JSON.stringify(document)}`);
  let levels = MAX_LEVELS;
  for (let probe: unknown = document; isRecord(probe); probe = Object.values(probe).find(isRecord)) {
    if (--levels < 0) refuse("", "nested deeper than 64 levels");
  }
  const root = asJson(document, where);
  renameInt(root);
  const { fault, patterns } = surveySchema(root, "author");
  const wrong = fault ?? patterns[0];
  if (wrong) refuse(wrong.path, wrong.problem);
  const { $schema: _dialect, $id: _id, ...schema } = root;
  return schema;
}
