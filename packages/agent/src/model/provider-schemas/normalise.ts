import { isRecord } from "@tenon/core";
import { resolvePointer } from "@tenon/core/internal";

/** A schema as plain JSON, without references, in the words of draft 2020-12. */
export type Node = Record<string, unknown>;

const MAX_DEPTH = 20;
const MAX_NODES = 2_000;
const MAX_TEXT = 100_000;
const MAX_ONE_TEXT = 4_000;
const MAX_VALUES = 500;
const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

/** The schemas a walk has come through: a reference to one of them is a recursion. */
interface Trail {
  readonly schema: object;
  readonly above: Trail | undefined;
  readonly depth: number;
}

interface Walk {
  readonly root: unknown;
  nodes: number;
  /** Characters of descriptions, names and values still allowed. */
  text: number;
}

type Reader = (walk: Walk, value: unknown, trail: Trail) => unknown;

function paid(walk: Walk, length: number): boolean {
  walk.text -= length;
  return walk.text >= 0;
}

const text: Reader = (walk, value) => {
  if (typeof value !== "string") return undefined;
  const short = value.length > MAX_ONE_TEXT ? `${value.slice(0, MAX_ONE_TEXT)}…` : value;
  return paid(walk, short.length) ? short : undefined;
};
const flag: Reader = (_, value) => (typeof value === "boolean" ? value : undefined);
const number: Reader = (_, value) => (Number.isFinite(value) ? value : undefined);
const positive: Reader = (_, value) => (Number.isFinite(value) && Number(value) > 0 ? value : undefined);
const count: Reader = (_, value) => (Number.isSafeInteger(value) && Number(value) >= 0 ? value : undefined);
const json: Reader = (walk, value) => {
  try {
    const written = JSON.stringify(value);
    // what came back is what goes on the wire: no getters, no undefined, no cycles
    return written !== undefined && written.length <= MAX_ONE_TEXT && paid(walk, written.length)
      ? JSON.parse(written)
      : undefined;
  } catch {
    return undefined; // a cycle, a bigint, or nested too deeply
  }
};
const values: Reader = (walk, value, trail) => {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_VALUES) return undefined;
  const seen = new Map<string, unknown>();
  for (const item of value) {
    const kept = json(walk, item, trail);
    if (kept === undefined) return undefined; // a cut list would forbid what is allowed
    seen.set(JSON.stringify(kept), kept);
  }
  return [...seen.values()];
};
const strings: Reader = (walk, value) => {
  if (!Array.isArray(value)) return undefined;
  const kept = [...new Set(value.filter((item) => typeof item === "string"))].slice(0, MAX_VALUES);
  return paid(
    walk,
    kept.reduce((sum, item) => sum + item.length, 0),
  )
    ? kept
    : undefined;
};

/** Only what every regular expression engine reads alike: providers compile patterns with engines of their own. */
const pattern: Reader = (walk, value) => {
  if (typeof value !== "string" || value.length > 500 || !paid(walk, value.length)) return undefined;
  if (/\(\?(?!:)|\\[1-9kpPcuxXAZzGQEhHRK]/.test(value)) return undefined; // look-around, groups by name, references, dialects
  try {
    new RegExp(value, "u");
    return value;
  } catch {
    return undefined;
  }
};

const schema: Reader = (walk, value, trail) => {
  const node = read(walk, value, trail);
  return node === false ? undefined : node;
};
/** `items: false` and `additionalProperties: false` mean something; other places are left out when nothing fits them. */
const schemaOrFlag: Reader = (walk, value, trail) => (typeof value === "boolean" ? value : schema(walk, value, trail));
const schemas: Reader = (walk, value, trail) => {
  if (!Array.isArray(value)) return undefined;
  const kept: Node[] = [];
  for (const item of value) {
    if (walk.nodes <= 0) return kept.length > 0 ? [...kept, {}] : undefined; // whatever was cut fits the rest
    const node = read(walk, item, trail);
    if (node !== false) kept.push(node);
  }
  return kept.length > 0 ? kept : undefined;
};
const properties: Reader = (walk, value, trail) => {
  if (!isRecord(value)) return undefined;
  const kept: Array<[string, Node]> = [];
  for (const name of Object.keys(value)) {
    if (walk.nodes <= 0 || !paid(walk, name.length)) break;
    const node = name === "__proto__" ? false : read(walk, value[name], trail);
    if (node !== false) kept.push([name, node]);
  }
  return Object.fromEntries(kept);
};
const patterns: Reader = (walk, value, trail) => {
  const kept = Object.entries((properties(walk, value, trail) ?? {}) as Node); // it returns objects
  const usable = kept.filter(([name]) => pattern(walk, name, trail) !== undefined);
  return usable.length > 0 ? Object.fromEntries(usable) : undefined;
};
const needs: Reader = (walk, value, trail) => {
  if (!isRecord(value)) return undefined;
  const kept = Object.entries(value).slice(0, MAX_VALUES);
  return Object.fromEntries(kept.map(([name, list]) => [name, strings(walk, list, trail) ?? []]));
};
const negated: Reader = (walk, value, trail) => {
  const node = read(walk, value, trail);
  return node !== false && Object.keys(node).length > 0 ? node : undefined; // `not: {}` would forbid everything
};

const types: Reader = (_, value) => {
  if (typeof value === "string") return TYPES.includes(value) ? value : undefined;
  if (!Array.isArray(value)) return undefined;
  const known = [...new Set(value.filter((item) => TYPES.includes(item)))];
  return known.length > 1 ? known : known[0];
};

/** What is kept of a schema. `$id`, `$defs`, `format` assertions of other drafts and unknown words are not. */
const READERS: ReadonlyMap<string, Reader> = new Map([
  ["then", schema], // as an object's key it would look like a promise
  ...Object.entries({
    type: types,
    title: text,
    description: text,
    format: text,
    default: json,
    const: json,
    enum: values,
    examples: values,
    pattern,
    minimum: number,
    maximum: number,
    exclusiveMinimum: number,
    exclusiveMaximum: number,
    multipleOf: positive,
    minLength: count,
    maxLength: count,
    minItems: count,
    maxItems: count,
    minProperties: count,
    maxProperties: count,
    uniqueItems: flag,
    required: strings,
    properties,
    patternProperties: patterns,
    additionalProperties: schemaOrFlag,
    propertyNames: schema,
    dependentRequired: needs,
    dependentSchemas: properties,
    items: schema,
    prefixItems: schemas,
    contains: schema,
    anyOf: schemas,
    oneOf: schemas,
    allOf: schemas,
    not: negated,
    if: schema,
    else: schema,
  }),
]);

/** Words of older drafts and of OpenAPI, said as draft 2020-12 says them. */
function modernised(given: Record<string, unknown>): Record<string, unknown> {
  const extra: Record<string, unknown> = {};
  if (Array.isArray(given.items)) Object.assign(extra, { items: undefined, prefixItems: given.items });
  for (const [bound, exclusive] of [
    ["minimum", "exclusiveMinimum"],
    ["maximum", "exclusiveMaximum"],
  ] as const) {
    if (given[exclusive] === true) Object.assign(extra, { [exclusive]: given[bound], [bound]: undefined });
  }
  if (given.nullable === true && typeof given.type === "string" && given.type !== "null") {
    extra.type = [given.type, "null"];
    if (Array.isArray(given.enum) && !given.enum.includes(null)) extra.enum = [...given.enum, null];
  }
  return Object.keys(extra).length > 0 ? { ...given, ...extra } : given;
}

/** Two descriptions of one value that both hold. */
export function mergeNodes(a: Node, b: Node): Node {
  const merged: Node = { ...a, ...b };
  if (isRecord(a.properties) && isRecord(b.properties)) {
    const both = Object.entries(b.properties).map(([name, node]): [string, unknown] => {
      const other = isRecord(a.properties) && Object.hasOwn(a.properties, name) ? a.properties[name] : undefined;
      return [name, isRecord(other) && isRecord(node) ? { ...other, ...node } : node];
    });
    merged.properties = { ...a.properties, ...Object.fromEntries(both) };
  }
  if (Array.isArray(a.required) && Array.isArray(b.required)) {
    merged.required = [...new Set([...a.required, ...b.required])];
  }
  return merged;
}

/** Such a schema needs `items`: OpenAI refuses lists that do not say what is in them. */
const holdsList = (type: unknown): boolean => type === "array" || (Array.isArray(type) && type.includes("array"));

/** What is said of a value whose form would have to contain itself. */
function recursion(target: unknown): Node {
  const given = isRecord(target) ? target : {};
  const type = types({ root: undefined, nodes: 0, text: 0 }, given.type, { schema: {}, above: undefined, depth: 0 });
  const shape = type ?? (isRecord(given.properties) ? "object" : undefined);
  return {
    ...(shape !== undefined && { type: shape }),
    ...(holdsList(shape) && { items: {} }),
    description: "Has the same form as the value around it.",
  };
}

function isAbove(trail: Trail | undefined, target: unknown): boolean {
  for (let at = trail; at; at = at.above) if (at.schema === target) return true;
  return false;
}

/** One schema; false where nothing can fit, `{}` where the limits are reached. */
function read(walk: Walk, given: unknown, above: Trail | undefined): Node | false {
  walk.nodes -= 1;
  if (given === false) return false;
  const depth = (above?.depth ?? 0) + 1;
  if (!isRecord(given) || depth > MAX_DEPTH || walk.nodes < 0 || isAbove(above, given)) return {};
  const trail: Trail = { schema: given, above, depth };
  const node: Node = {};
  const source = modernised(given);
  for (const key of Object.keys(source)) {
    const value = source[key] === undefined ? undefined : READERS.get(key)?.(walk, source[key], trail);
    if (value !== undefined) node[key] = value;
  }
  if (holdsList(node.type) && node.items === undefined) node.items = {};
  const ref = source.$ref ?? source.$dynamicRef;
  const target = resolvePointer(walk.root, ref);
  if (target === undefined || target === true) return node; // a reference elsewhere says nothing here
  if (isAbove(trail, target)) return { ...recursion(target), ...node };
  const pointed = read(walk, target, trail);
  return pointed === false ? false : mergeNodes(pointed, node);
}

/**
 * A server's schema without references, unknown words and older drafts' words. Bounded: at most 20 levels, 2,000 schemas and
 * 100,000 characters; what lies beyond is `{}`, "anything". Never throws.
 */
export function normalise(given: unknown): Node {
  const walk: Walk = { root: given, nodes: MAX_NODES, text: MAX_TEXT };
  const node = read(walk, given, undefined);
  return node === false ? {} : node;
}
