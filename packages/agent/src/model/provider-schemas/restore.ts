import { isRecord } from "@tenon/core";
import { resolvePointer } from "@tenon/core/internal";

const MAX_DEPTH = 24;
const MAX_WORK = 20_000;
const MAX_TEXT = 1_000_000;

interface Work {
  readonly root: unknown;
  left: number;
}

function listed(schema: Record<string, unknown>, words: readonly string[]): unknown[] {
  return words.flatMap((word) => (Array.isArray(schema[word]) ? schema[word] : []));
}

/** The schema, what it points to, and its branches, as one list of plain schemas. */
function parts(schema: unknown, work: Work, depth = 0): Record<string, unknown>[] {
  work.left -= 1;
  if (!isRecord(schema) || depth > MAX_DEPTH || work.left < 0) return [];
  const target = resolvePointer(work.root, schema.$ref);
  const inner = [target, ...listed(schema, ["anyOf", "oneOf", "allOf"])];
  return [schema, ...inner.flatMap((item) => parts(item, work, depth + 1))];
}

const kindOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value === "object" ? "object" : typeof value;

/** A text as the value it stands for, where the schemas name another type and not text. */
function fromText(text: string, schemas: readonly Record<string, unknown>[]): unknown {
  const fixed = schemas.flatMap((schema) => [
    ...(Array.isArray(schema.enum) ? schema.enum : []),
    ...("const" in schema ? [schema.const] : []),
  ]);
  const types = new Set<unknown>(schemas.flatMap(({ type }) => (Array.isArray(type) ? type : (type ?? []))));
  for (const value of fixed) types.add(kindOf(value));
  if (types.size === 0 || fixed.includes(text)) return text;
  if (types.has("string") && !fixed.some((value) => typeof value !== "string")) return text;
  const value = fixed.find((item) => typeof item !== "string" && JSON.stringify(item) === text);
  if (value !== undefined) return value;
  if ((types.has("number") || types.has("integer")) && /^-?\d{1,16}(\.\d{1,16})?([eE][+-]?\d{1,3})?$/.test(text)) {
    return Number(text);
  }
  if (types.has("boolean") && (text === "true" || text === "false")) return text === "true";
  if (types.has("null") && text === "null") return null;
  const opens = (types.has("object") && /^\s*\{/.test(text)) || (types.has("array") && /^\s*\[/.test(text));
  if (!opens || text.length > MAX_TEXT) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function restoreValue(schema: unknown, given: unknown, work: Work, depth: number): unknown {
  if (depth > MAX_DEPTH || work.left < 0) return given;
  const schemas = parts(schema, work);
  const value = typeof given === "string" ? fromText(given, schemas) : given;
  if (Array.isArray(value)) {
    const items = schemas.map((item) => item.items).find(isRecord);
    const places = schemas.map((item) => item.prefixItems ?? item.items).find(Array.isArray) ?? [];
    return value.map((item, at) => restoreValue(places[at] ?? items, item, work, depth + 1));
  }
  if (!isRecord(value)) return value;
  const schemaOf = (name: string): unknown => {
    const found = schemas.flatMap(({ properties }) =>
      isRecord(properties) && Object.hasOwn(properties, name) ? [properties[name]] : [],
    );
    if (found.length > 0) return found.length === 1 ? found[0] : { anyOf: found };
    return schemas.map((item) => item.additionalProperties).find(isRecord);
  };
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, restoreValue(schemaOf(name), item, work, depth + 1)]),
  );
}

/** `value` with texts turned into the numbers, booleans, enum values, lists and objects that `schema` wants there. */
export function restore(schema: unknown, value: unknown): unknown {
  return restoreValue(schema, value, { root: schema, left: MAX_WORK }, 0);
}
