/**
 * What the real services refuse about a tool's schema, learned from their error messages and issue threads. Written apart from
 * `toModelSchema`, so that the two can disagree.
 */
import { Ajv2020 } from "ajv/dist/2020.js";

type Schema = Record<string, unknown>;
type Rule = (schema: unknown) => string | undefined;

const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const draft = new Ajv2020({ strict: false, logger: false, validateFormats: false });

const ONE = ["items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"];
const LISTS = ["prefixItems", "anyOf", "oneOf", "allOf"];
const MAPS = ["properties", "patternProperties", "dependentSchemas"];

/** Every schema inside a schema, with its path. */
function* inside(schema: unknown, path = "$"): Generator<[path: string, schema: Schema]> {
  if (!isObject(schema)) return;
  yield [path, schema];
  for (const word of ONE) yield* inside(schema[word], `${path}.${word}`);
  for (const word of LISTS) {
    const list = schema[word];
    if (Array.isArray(list)) for (const [at, item] of list.entries()) yield* inside(item, `${path}.${word}[${at}]`);
  }
  for (const word of MAPS) {
    const map = schema[word];
    if (isObject(map)) for (const [name, item] of Object.entries(map)) yield* inside(item, `${path}.${word}.${name}`);
  }
}

const isList = (type: unknown) => type === "array" || (Array.isArray(type) && type.includes("array"));

function rootProblem(schema: unknown, banned: readonly string[]): string | undefined {
  if (!isObject(schema) || schema.type !== "object") return 'schema must be of type "object"';
  const word = banned.find((key) => key in schema);
  if (word) return `'${word}' is not allowed at the top level`;
  return isObject(schema.properties) ? undefined : "object schema missing properties";
}

function commonProblem(schema: unknown): string | undefined {
  // as OpenAI's and Anthropic's: the document must itself be valid draft 2020-12
  if (!draft.validateSchema(schema as Schema)) return `not a JSON Schema: ${draft.errorsText(draft.errors)}`;
  for (const [path, node] of inside(schema)) {
    if (isList(node.type) && !isObject(node.items)) return `${path}: array schema missing items`;
    if (typeof node.$ref === "string" && !/^#\/(\$defs|definitions)\//.test(node.$ref)) {
      return `${path}: reference ${node.$ref} cannot be resolved`;
    }
    if (typeof node.pattern === "string") {
      try {
        new RegExp(node.pattern, "u");
      } catch {
        return `${path}: '${node.pattern}' is not a 'regex'`;
      }
      if (/\(\?[=!<P]|\\[pPkZzA]/.test(node.pattern)) return `${path}: unsupported regular expression`;
    }
    if (Array.isArray(node.enum) && node.enum.length === 0) return `${path}: enum is empty`;
  }
  return JSON.stringify(schema).length > 1_000_000 ? "schema too large" : undefined;
}

/** Words that `toModelSchema` takes out although the services bear with them: the first one left, with its place. */
export function leftover(schema: unknown): string | undefined {
  for (const [path, node] of inside(schema)) {
    const word = ["$ref", "$dynamicRef", "$id", "$schema", "$defs", "definitions"].find((key) => key in node);
    if (word) return `${path}: ${word}`;
  }
  return undefined;
}

export const openaiProblem: Rule = (schema) =>
  rootProblem(schema, ["anyOf", "oneOf", "allOf", "enum", "not"]) ?? commonProblem(schema);

export const anthropicProblem: Rule = (schema) => {
  const problem = rootProblem(schema, ["anyOf", "oneOf", "allOf"]) ?? commonProblem(schema);
  if (problem) return problem;
  const names = isObject(schema) && isObject(schema.properties) ? Object.keys(schema.properties) : [];
  const bad = names.find((name) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(name));
  return bad === undefined ? undefined : "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'";
};

const GEMINI_WORDS = [
  "type",
  "format",
  "title",
  "description",
  "nullable",
  "enum",
  "items",
  "minItems",
  "maxItems",
  "properties",
  "required",
  "minimum",
  "maximum",
  "anyOf",
];
const GEMINI_FORMATS: Record<string, string[]> = {
  string: ["enum", "date-time"],
  number: ["float", "double"],
  integer: ["int32", "int64"],
};

function geminiNode(schema: unknown, path: string, root: boolean): string | undefined {
  if (!isObject(schema)) return `${path}: not a schema`;
  const unknown = Object.keys(schema).find((word) => !GEMINI_WORDS.includes(word));
  if (unknown) return `Unknown name "${unknown}" at '${path}': Cannot find field.`;
  const { type, anyOf, items, properties, required, format } = schema;
  if (anyOf !== undefined) {
    if (Object.keys(schema).length > 1) return `${path}: when using any_of, it must be the only field set`;
    if (!Array.isArray(anyOf) || anyOf.length === 0) return `${path}.anyOf: empty`;
    return anyOf.map((item, at) => geminiNode(item, `${path}.anyOf[${at}]`, false)).find(Boolean);
  }
  if (typeof type !== "string") return `${path}: schema didn't specify the schema type field`;
  if (!["string", "number", "integer", "boolean", "object", "array"].includes(type))
    return `${path}: Invalid value (type)`;
  if (schema.enum !== undefined) {
    if (type !== "string") return `${path}.enum: only allowed for STRING type`;
    if (!Array.isArray(schema.enum) || schema.enum.length === 0) return `${path}.enum: empty`;
    if (schema.enum.some((value) => typeof value !== "string")) return `${path}.enum: Invalid value (TYPE_STRING)`;
    if (schema.enum.includes("")) return `${path}.enum[0]: cannot be empty`;
  }
  if (format !== undefined && !GEMINI_FORMATS[type]?.includes(String(format))) return `${path}.format: not supported`;
  for (const word of ["properties", "required"] as const) {
    if (schema[word] !== undefined && type !== "object") return `${path}.${word}: only allowed for OBJECT type`;
  }
  if (type === "array")
    return items === undefined ? `${path}.items: missing field` : geminiNode(items, `${path}.items`, false);
  if (items !== undefined) return `${path}.items: only allowed for ARRAY type`;
  if (type !== "object") return undefined;
  const names = isObject(properties) ? Object.keys(properties) : [];
  if (names.length === 0 && !root) return `${path}.properties: should be non-empty for OBJECT type`;
  const strange = Array.isArray(required) ? required.find((name) => !names.includes(name)) : undefined;
  if (strange !== undefined) return `${path}.required[0]: property is not defined`;
  return names
    .map((name) => geminiNode((properties as Schema)[name], `${path}.properties[${name}]`, false))
    .find(Boolean);
}

/** For a whole `parameters`. One without properties must not be sent: clients leave `parameters` out. */
export const geminiProblem: Rule = (schema) =>
  isObject(schema) && schema.type === "object" ? geminiNode(schema, "parameters", true) : "parameters: not an OBJECT";

export const RULES: Readonly<Record<"openai" | "deepseek" | "anthropic" | "gemini", Rule>> = {
  openai: openaiProblem,
  deepseek: openaiProblem,
  anthropic: anthropicProblem,
  gemini: geminiProblem,
};

/** What every provider says about names. */
export function nameProblem(name: unknown): string | undefined {
  return typeof name === "string" && /^[a-zA-Z0-9_-]{1,64}$/.test(name)
    ? undefined
    : `Invalid tool name ${JSON.stringify(name)}: does not match ^[a-zA-Z0-9_-]{1,64}$`;
}
