import { ContractError, isRecord, type Json, type JsonObject } from "@tenon/core";
import { resolvePointer } from "@tenon/core/internal";

/** Nested schemas and values deeper than this are refused. */
const MAX_DEPTH = 64;
/** Alternatives inside alternatives of the same place. */
const MAX_BRANCHING = 4;
/** Places a value is tried at: a schema with alternatives at every level must not take for ever. */
const MAX_STEPS = 50_000;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A value of the context that is not what its contract declares. */
export function wrongValue(path: string, is: string, wanted: string): ContractError {
  return new ContractError(`The context's ${path} is ${is}; the contract wants ${wanted}. Correct the state.`, {
    code: "invalid_context_value",
    maybeExecuted: false,
    data: { reason: "invalid_context_value", field: path },
  });
}

/** What the parts of one schema that stand in the same place say together. */
interface Place {
  readonly types: ReadonlySet<string> | undefined;
  readonly parts: readonly JsonObject[];
  readonly branches: ReadonlyArray<readonly unknown[]>;
}

function jsonType(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function typesOf(schema: JsonObject): string[] | undefined {
  if (typeof schema.type === "string") return [schema.type];
  if (Array.isArray(schema.type)) return schema.type.map(String);
  if ("const" in schema) return [jsonType(schema.const)];
  if (Array.isArray(schema.enum)) return schema.enum.map(jsonType);
  if (isRecord(schema.properties)) return ["object"];
  return "items" in schema || "prefixItems" in schema ? ["array"] : undefined;
}

/** The schema, what it refers to and what it is put together from. */
function partsOf(root: JsonObject, schema: unknown, depth = 0): JsonObject[] {
  if (!isRecord(schema) || depth > MAX_DEPTH) return [];
  const own = schema as JsonObject; // part of a JSON Schema document
  const target = resolvePointer(root, own.$ref);
  const all = Array.isArray(own.allOf) ? own.allOf : [];
  return [own, ...[target, ...all].flatMap((part) => partsOf(root, part, depth + 1))];
}

function placeOf(root: JsonObject, schema: unknown): Place {
  const parts = partsOf(root, schema);
  const said = parts.map(typesOf).filter((types) => types !== undefined);
  const branches = parts.flatMap((part) =>
    [part.anyOf, part.oneOf].filter((list): list is Json[] => Array.isArray(list) && list.length > 0),
  );
  return { types: said[0] && new Set(said[0]), parts, branches };
}

function describe(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "number") return String(value);
  if (typeof value !== "object") return typeof value === "undefined" ? "undefined" : `a ${typeof value}`;
  if (Array.isArray(value)) return "a list";
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name;
  return typeof name === "string" && name !== "Object" ? `a ${name}` : "an object";
}

function isPlain(value: object): value is Record<string, unknown> {
  const proto: unknown = Object.getPrototypeOf(value);
  return proto === Object.prototype || proto === null;
}

/** An object of a UUID library: it has a class and says itself as a UUID. */
function uuidText(value: object): string | undefined {
  if (isPlain(value) || Array.isArray(value)) return undefined;
  const text = String(value);
  return UUID.test(text) ? text : undefined;
}

/** The text of a value that JSON has no kind for, where it has one. */
function textFor(value: unknown, path: string): string | undefined {
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return undefined;
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw wrongValue(path, "an invalid Date", "a valid one");
    return value.toISOString();
  }
  if (value instanceof URL) return value.href;
  if (ArrayBuffer.isView(value))
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("base64");
  return uuidText(value);
}

/** The items of a value that is a list to JSON, where it is one. */
function itemsOf(value: unknown): unknown[] | undefined {
  if (Array.isArray(value)) return [...value];
  if (value instanceof Set || value instanceof Map) return [...value];
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    return [...(value as unknown as Iterable<unknown>)]; // every view but DataView is a list of numbers
  }
  return undefined;
}

function propertyOf(place: Place, root: JsonObject, key: string, depth = 0): unknown {
  for (const part of place.parts) {
    if (isRecord(part.properties) && Object.hasOwn(part.properties, key)) return part.properties[key];
  }
  for (const branch of depth < MAX_BRANCHING ? place.branches.flat() : []) {
    const found = propertyOf(placeOf(root, branch), root, key, depth + 1);
    if (found !== undefined) return found;
  }
  return place.parts.find((part) => isRecord(part.additionalProperties))?.additionalProperties;
}

/**
 * The JSON value that a schema's place gets for a value of the state. A value without a kind of its own in JSON is converted
 * only to what the schema says: numbers, bigints, dates, URLs, UUIDs and bytes (base64) to a string, sets, maps and typed
 * arrays to an array, maps with string keys to an object. Null is never a text.
 * @throws ContractError `code: "invalid_context_value"` naming the path
 */
export function fitValue(root: JsonObject, schema: unknown, given: unknown, at: string): Json {
  const open: object[] = [];
  let steps = 0;

  function fit(wanted: unknown, value: unknown, path: string): Json {
    if (typeof value !== "object" || value === null) return fitHere(wanted, value, path);
    if (open.includes(value)) throw wrongValue(path, "a cycle", "a tree");
    if (open.length >= MAX_DEPTH) throw wrongValue(path, "too deep", `at most ${MAX_DEPTH} levels`);
    open.push(value);
    try {
      return fitHere(wanted, value, path);
    } finally {
      open.pop();
    }
  }

  function fitHere(wanted: unknown, value: unknown, path: string, branching = 0): Json {
    steps += 1;
    if (steps > MAX_STEPS || branching > MAX_BRANCHING) throw wrongValue(path, "too much to check", "a simpler schema");
    const place = placeOf(root, wanted);
    const [branches] = place.branches;
    if (!branches || place.types) return fitTypes(place, value, path);
    let first: unknown;
    for (const branch of branches) {
      try {
        const inner = placeOf(root, branch);
        const nested = !inner.types && inner.branches.length > 0;
        const found = nested ? fitHere(branch, value, path, branching + 1) : fitTypes(inner, value, path);
        if (typeof value !== "object" || value === null || matches(root, branch, found)) return found;
      } catch (error) {
        first ??= error;
      }
    }
    throw first ?? wrongValue(path, describe(value), "another kind");
  }

  function fitTypes({ types, ...place }: Place, value: unknown, path: string): Json {
    const wants = types ? [...types].join(" or ") : "JSON";
    const allows = (type: string): boolean => types === undefined || types.has(type);
    const refuse = (): never => {
      throw wrongValue(path, describe(value), wants);
    };
    if (typeof value === "number" && !Number.isFinite(value)) return refuse();
    const kind = jsonType(value);
    if (kind === "null" || kind === "string" || kind === "boolean") {
      return allows(kind) ? (value as null | string | boolean) : refuse(); // one of the three kinds
    }
    if (typeof value === "number" && (allows("number") || (allows("integer") && Number.isInteger(value)))) {
      return value === 0 ? 0 : value; // JSON has one zero
    }
    if (typeof value === "bigint" && (types?.has("integer") || types?.has("number"))) {
      if (Number.isSafeInteger(Number(value))) return Number(value);
      throw wrongValue(path, "a bigint beyond what JSON numbers hold", "a safe integer, or a string");
    }
    if (typeof value === "object" && value !== null && isPlain(value)) {
      return allows("object") ? fitObject({ types, ...place }, Object.entries(value), path) : refuse();
    }
    if (Array.isArray(value)) return allows("array") ? fitList(place.parts, value, path) : refuse();
    if (types?.has("string")) {
      const text = textFor(value, path);
      if (text !== undefined) return text;
    }
    const items = types?.has("array") ? itemsOf(value) : undefined;
    if (items) return fitList(place.parts, items, path);
    if (types?.has("object") && value instanceof Map) {
      const entries = [...value].map(([key, item]): [string, unknown] => {
        if (typeof key !== "string") throw wrongValue(path, "a Map with keys that are no strings", "string keys");
        return [key, item];
      });
      return fitObject({ types, ...place }, entries, path);
    }
    return refuse();
  }

  function fitList(parts: readonly JsonObject[], items: readonly unknown[], path: string): Json[] {
    const prefix = parts.map((part) => part.prefixItems).find(Array.isArray) ?? [];
    const rest = parts.map((part) => part.items).find((schema) => schema !== undefined);
    return Array.from(items, (item, i) => fit(i < prefix.length ? prefix[i] : rest, item, `${path}[${i}]`));
  }

  function fitObject(place: Place, entries: ReadonlyArray<readonly [string, unknown]>, path: string): JsonObject {
    const out = entries
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, fit(propertyOf(place, root, key), item, `${path}.${key}`)] as const);
    return Object.fromEntries(out);
  }

  return fit(schema, given, at);
}

/** Whether an object has what tells a branch from its siblings: constants, and the properties it requires. */
function matches(root: JsonObject, branch: unknown, value: Json): boolean {
  if (!isRecord(value)) return true;
  return partsOf(root, branch).every((part) => {
    const required = Array.isArray(part.required) ? part.required : [];
    if (!required.every((key) => Object.hasOwn(value, String(key)))) return false;
    return Object.entries(isRecord(part.properties) ? part.properties : {}).every(([key, schema]) => {
      if (!isRecord(schema) || !Object.hasOwn(value, key)) return true;
      if ("const" in schema) return value[key] === schema.const;
      return !Array.isArray(schema.enum) || schema.enum.some((one) => one === value[key]);
    });
  });
}
