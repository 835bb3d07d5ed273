import { createHash } from "node:crypto";
import { TenonError } from "./errors.ts";

/** A value that JSON can carry. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** An object that JSON can carry. */
export type JsonObject = { [key: string]: Json };

/** A value that JSON cannot carry; `message` names the path to it. */
export class JsonError extends TenonError {}

function refuse(path: string, found: string, todo: string): never {
  throw new JsonError(`${path} is ${found}, which JSON cannot carry; ${todo}`, { code: "not_json", data: { path } });
}

function convert(value: unknown, path: string, open: object[]): Json | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      // JSON has no -0
      return Number.isFinite(value) ? value + 0 : refuse(path, String(value), "return a finite number or null");
    case "bigint":
      return refuse(path, "a bigint", "return a string or a number");
    case "symbol":
      return refuse(path, "a symbol", "return a string");
    case "undefined":
    case "function":
      return undefined;
  }
  if (value === null) return null;
  const object = value as object; // typeof is "object" and it is not null
  if (open.includes(object)) refuse(path, "a cycle", "return a tree");
  if (object instanceof Date) {
    return Number.isNaN(object.getTime())
      ? refuse(path, "an invalid Date", "return a valid one or null")
      : object.toISOString();
  }
  if (object instanceof URL) return object.href;
  if (object instanceof Set) return convert([...object], path, [...open, object]);
  if (object instanceof Map) {
    for (const key of object.keys()) {
      if (typeof key !== "string") refuse(path, "a Map with keys that are not strings", "return an array of pairs");
    }
    return convert(Object.fromEntries(object), path, [...open, object]);
  }
  if (ArrayBuffer.isView(object) || object instanceof ArrayBuffer) {
    refuse(path, "binary data", "return base64 text or one of the content helpers");
  }
  const inside = [...open, object];
  if (Array.isArray(object)) return object.map((item, i) => convert(item, `${path}[${i}]`, inside) ?? null);
  if ("toJSON" in object && typeof object.toJSON === "function") return convert(object.toJSON(), path, inside);
  const out: JsonObject = {};
  for (const [key, item] of Object.entries(object)) {
    const json = convert(item, `${path}.${key}`, inside);
    // defineProperty, so that a key named "__proto__" stays a key
    if (json !== undefined)
      Object.defineProperty(out, key, { value: json, enumerable: true, writable: true, configurable: true });
  }
  return out;
}

/**
 * The JSON value for `value`: dates and URLs become strings, a Set an array, a Map with string keys an object;
 * properties that are undefined or functions are left out.
 * @param path how the value is called in an error
 * @throws JsonError for NaN, infinities, bigint, symbols, binary data and cycles, naming the path
 */
export function toJson(value: unknown, path = "value"): Json {
  return convert(value, path, []) ?? null;
}

/** Half a surrogate pair, which no UTF-8 can carry. */
const LONE = /\p{Surrogate}/u;

function canonical(json: Json): string {
  if (Array.isArray(json)) return `[${json.map(canonical).join(",")}]`;
  if (json === null || typeof json !== "object") return JSON.stringify(json);
  const keys = Object.keys(json).sort(); // by UTF-16 code units
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(json[key] as Json)}`).join(",")}}`; // key is from json
}

function refuseLone(json: Json, path: string): void {
  const refuseText = (text: string): void => {
    if (LONE.test(text)) refuse(path, "a text with half a surrogate pair", "repair the text");
  };
  if (typeof json === "string") refuseText(json);
  else if (Array.isArray(json)) for (const [i, item] of json.entries()) refuseLone(item, `${path}[${i}]`);
  else if (isRecord(json)) {
    for (const [key, item] of Object.entries(json)) {
      refuseText(key);
      refuseLone(item, `${path}.${key}`);
    }
  }
}

/**
 * Canonical JSON text (RFC 8785), the same in every language: keys sorted by UTF-16 code units, numbers as ECMAScript writes
 * them, no white space. What is signed is its UTF-8.
 *
 * @throws JsonError for what `toJson` refuses and for half surrogate pairs
 */
export function canonicalJson(value: unknown): string {
  const json = toJson(value);
  refuseLone(json, "value");
  return canonical(json);
}

/** SHA-256 of the canonical JSON of `value`, base64url, 43 characters. Takes half surrogate pairs, as arguments may have them. */
export function digest(value: unknown): string {
  return createHash("sha256")
    .update(canonical(toJson(value)))
    .digest("base64url");
}

/** Narrowing for data that came over the wire: a JSON object, not an array. What is a part of JSON is JSON. */
export function isRecord(value: Json | undefined): value is JsonObject;
export function isRecord(value: unknown): value is Record<string, unknown>;
export function isRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * About how many bytes a value has as JSON: texts in UTF-8 and a few bytes for everything else. Counting stops above
 * `limit`, so that a large value costs no more than a small one.
 */
export function jsonSize(value: unknown, limit: number): number {
  let size = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && size <= limit) {
    const next = open.pop();
    if (typeof next === "string") size += Buffer.byteLength(next) + 2;
    else if (Array.isArray(next)) {
      size += next.length + 2;
      if (size <= limit) for (const item of next) open.push(item);
    } else if (isRecord(next)) {
      size += 2;
      // without a list of entries: this runs for every answer
      for (const key in next) {
        size += Buffer.byteLength(key) + 4;
        open.push(next[key]);
      }
    } else size += 4;
  }
  return size;
}
