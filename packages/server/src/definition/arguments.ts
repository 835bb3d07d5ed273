import { isRecord, type JsonObject, type Schema, type SchemaIssue } from "@tenon/core";
import {
  didYouMean,
  issueMessage,
  type OptionChecks,
  positive,
  resolvePointer,
  validate,
  valueAt,
  wrongFields,
  zeroOrMore,
} from "@tenon/core/internal";
import { wholeArguments } from "../dispatch/params.ts";

/** What happens to arguments that the schema does not name: left out, or refused with "did you mean". */
export type UnknownArguments = "strip" | "reject";

/** Limits of one call's arguments. */
export interface ArgumentLimits {
  /** Levels of nesting. Default 100. */
  maxDepth: number;
  /** Elements of one array. Default 10,000. */
  maxArrayElements: number;
}

/** What the limits may be. */
export const ARGUMENT_LIMITS = {
  maxDepth: positive("levels"),
  maxArrayElements: zeroOrMore("elements"),
} as const satisfies OptionChecks<ArgumentLimits>;

/** How a server reads arguments. */
export interface ReadingRules {
  readonly unknownArguments: UnknownArguments;
  readonly limits: ArgumentLimits;
}

export const READING_RULES: ReadingRules = {
  unknownArguments: "strip",
  limits: { maxDepth: 100, maxArrayElements: 10_000 },
};

/** A definition's arguments made ready to be read. */
export interface CompiledInput {
  readonly schema: Schema | undefined;
  /** Its JSON Schema, as callers see it. */
  readonly json: JsonObject;
  readonly unknownArguments: UnknownArguments | undefined;
  /** The definition's own limits, in the place of the server's. */
  readonly limits: Partial<ArgumentLimits> | undefined;
  /** Names the schema's root lists; undefined when it takes any. */
  readonly names: ReadonlySet<string> | undefined;
}

/**
 * Makes an input ready to be read.
 * @param own the definition's own words
 */
export function prepareInput(
  schema: Schema | undefined,
  json: JsonObject,
  own: { unknownArguments?: UnknownArguments | undefined; argumentLimits?: Partial<ArgumentLimits> | undefined } = {},
): CompiledInput {
  const open = json.additionalProperties !== undefined && json.additionalProperties !== false;
  const more = ["patternProperties", "anyOf", "oneOf", "allOf", "$ref", "if"].some((keyword) => keyword in json);
  const names = Object.keys(isRecord(json.properties) ? json.properties : {});
  const { unknownArguments, argumentLimits: limits } = own;
  return { schema, json, unknownArguments, limits, names: open || more ? undefined : new Set(names) };
}

/** Fields listed in one refusal; the rest is counted. */
const MAX_LISTED = 20;

function kind(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/**
 * Walks arguments once: refuses what is too deep or too long, and drops keys named `__proto__`, which would become the
 * prototype of a copy made by assignment. Returns the value itself where nothing had to go.
 */
function inspect(value: unknown, limits: ArgumentLimits, path: string, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth > limits.maxDepth) throw new Problem(`nested deeper than ${limits.maxDepth} levels`);
  if (Array.isArray(value)) {
    if (value.length > limits.maxArrayElements) {
      throw new Problem(`${path}: ${value.length} elements, more than the limit of ${limits.maxArrayElements}`);
    }
    let changed = false;
    const items = value.map((item, i) => {
      const clean = inspect(item, limits, `${path}[${i}]`, depth + 1);
      changed ||= clean !== item;
      return clean;
    });
    return changed ? items : value;
  }
  let changed = false;
  const entries: Array<[string, unknown]> = [];
  for (const [key, item] of Object.entries(value)) {
    const clean = inspect(item, limits, path ? `${path}.${key}` : key, depth + 1);
    changed ||= key === "__proto__" || clean !== item;
    if (key !== "__proto__") entries.push([key, clean]);
  }
  return changed ? Object.fromEntries(entries) : value;
}

/** Whether the value is within limits, without `__proto__`, and holds no text that could be JSON: as good as all are. */
function isPlain(value: unknown, limits: ArgumentLimits, depth: number): boolean {
  if (typeof value === "string") return value[0] !== "{" && value[0] !== "[" && value.trimStart() === value;
  if (typeof value !== "object" || value === null) return true;
  if (depth > limits.maxDepth) return false;
  if (Array.isArray(value)) {
    return value.length <= limits.maxArrayElements && value.every((item) => isPlain(item, limits, depth + 1));
  }
  return Object.keys(value).every((key) => key !== "__proto__" && isPlain(Reflect.get(value, key), limits, depth + 1));
}

/** Carries a readable refusal out of the walk. */
class Problem extends Error {}

/** Follows a local reference once; what is recursive is followed as deep as the value goes. */
function resolve(schema: unknown, root: JsonObject): JsonObject | undefined {
  if (!isRecord(schema)) return undefined;
  const target = resolvePointer(root, schema.$ref);
  return isRecord(target) ? target : (schema as JsonObject); // a part of a JSON Schema is JSON
}

/** The composite types a schema accepts; undefined when it would also accept text, which then stays text. */
function wanted(schema: unknown, root: JsonObject, depth = 0): Set<string> | undefined {
  const node = resolve(schema, root);
  if (!node || depth > 8) return undefined;
  const branches = node.anyOf ?? node.oneOf;
  if (Array.isArray(branches)) {
    const all = branches.map((branch) => wanted(branch, root, depth + 1));
    return all.includes(undefined) ? undefined : new Set(all.flatMap((types) => [...(types ?? [])]));
  }
  const types = Array.isArray(node.type) ? node.type : [node.type];
  if (types.some((type) => typeof type !== "string" || type === "string")) return undefined;
  return new Set(types.filter((type) => type === "object" || type === "array").map(String));
}

/** The one branch of a union that a value can mean: by its kind, then by the constants it carries (`kind: "circle"`). */
function branchOf(schema: unknown, value: object, root: JsonObject, depth = 0): JsonObject | undefined {
  const node = resolve(schema, root);
  const branches = node?.anyOf ?? node?.oneOf;
  if (!node || !Array.isArray(branches) || depth > 8) return node;
  const fits = branches
    .map((branch) => branchOf(branch, value, root, depth + 1))
    .filter((branch) => branch !== undefined)
    .filter((branch) => branch.type === undefined || branch.type === kind(value))
    .filter((branch) =>
      Object.entries(isRecord(branch.properties) ? branch.properties : {}).every(
        ([name, property]) =>
          !isRecord(property) || !("const" in property) || property.const === valueAt(value, [name]).value,
      ),
    );
  return fits.length === 1 ? fits[0] : undefined;
}

/**
 * Decodes text that holds JSON where, and only where, the schema wants an object or an array: models send both. Anything
 * else stays as it is, for the validator to judge.
 */
function decode(value: unknown, schema: unknown, root: JsonObject): unknown {
  if (typeof value === "string") {
    if (!/^\s*[[{]/.test(value)) return value;
    const types = wanted(schema, root);
    if (!types || types.size === 0) return value;
    try {
      const parsed: unknown = JSON.parse(value);
      return types.has(kind(parsed)) ? decode(parsed, schema, root) : value;
    } catch {
      return value;
    }
  }
  if (typeof value !== "object" || value === null) return value;
  const node = branchOf(schema, value, root);
  if (!node) return value;
  if (Array.isArray(value)) {
    if (!isRecord(node.items)) return value;
    const items = value.map((item) => decode(item, node.items, root));
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  const { properties } = node;
  if (!isRecord(properties)) return value;
  let changed = false;
  const entries = Object.entries(value).map(([key, item]) => {
    const read = Object.hasOwn(properties, key) ? decode(item, properties[key], root) : item;
    changed ||= read !== item;
    return [key, read];
  });
  return changed ? Object.fromEntries(entries) : value;
}

/** What the schema says about the place of an issue, for libraries that only say "Invalid input". */
function expected(json: JsonObject, issue: SchemaIssue): string | undefined {
  let node: JsonObject | undefined = resolve(json, json);
  for (const part of issue.path ?? []) {
    const key = typeof part === "object" ? part.key : part;
    const next =
      typeof key === "number" ? node?.items : isRecord(node?.properties) ? node.properties[String(key)] : undefined;
    node = resolve(next, json);
  }
  if (!node) return undefined;
  const name = (schema: unknown): string | undefined => {
    const one = resolve(schema, json);
    if (Array.isArray(one?.enum)) return one.enum.map((value) => JSON.stringify(value)).join(" or ");
    if (one && "const" in one) return JSON.stringify(one.const);
    return Array.isArray(one?.type) ? one.type.join(" or ") : typeof one?.type === "string" ? one.type : undefined;
  };
  const branches = node.anyOf ?? node.oneOf;
  const names = (Array.isArray(branches) ? branches : [node]).map(name);
  return names.includes(undefined) ? undefined : [...new Set(names)].join(" or ");
}

/** The issue with what was expected, where its library only says that something is wrong. */
function telling(issue: SchemaIssue, json: JsonObject): SchemaIssue {
  const wants = issueMessage(issue) === "Invalid input" ? expected(json, issue) : undefined;
  return wants ? { path: issue.path, message: `expected ${wants}` } : issue;
}

const inWords = (issues: readonly SchemaIssue[], value: unknown): string[] =>
  wrongFields(issues, value, { whole: "arguments" }).map(({ message }) => message);

const NO_OBJECT: SchemaIssue = { path: [], message: "must be an object" };

/** Every line once, no more than a reader can use. */
function list(lines: readonly string[]): string {
  const unique = [...new Set(lines)];
  const rest = unique.length - MAX_LISTED;
  return rest > 0 ? `${unique.slice(0, MAX_LISTED).join("; ")}; and ${rest} more` : unique.join("; ");
}

/**
 * Reads a call's arguments: limits first, then JSON text where an object or array is wanted, then unknown names, then the
 * schema. A problem lists every wrong field with what was expected and what came.
 */
export async function readArguments(
  input: CompiledInput,
  given: unknown,
  rules: ReadingRules,
): Promise<{ args: unknown } | { problem: string }> {
  let value = wholeArguments(given ?? {});
  if (!isRecord(value)) return { problem: inWords([NO_OBJECT], value).join("; ") };
  try {
    if (!isPlain(value, rules.limits, 1)) value = inspect(decode(value, input.json, input.json), rules.limits, "", 1);
  } catch (error) {
    // RangeError: nested so deep that the walk itself overflowed
    if (error instanceof Problem) return { problem: error.message };
    if (error instanceof RangeError) return { problem: `nested deeper than ${rules.limits.maxDepth} levels` };
    throw error;
  }
  const sent = value as Record<string, unknown>; // a record goes in, a record comes out
  const unknown: string[] = [];
  const { names } = input;
  const extra = names ? Object.keys(sent).filter((key) => !names.has(key)) : [];
  if (names && extra.length > 0) {
    // the tool's own word first, then what its schema says, then the server's default
    const closed = input.json.additionalProperties === false ? "reject" : rules.unknownArguments;
    if ((input.unknownArguments ?? closed) === "reject") {
      const free = [...names].filter((name) => !Object.hasOwn(sent, name));
      for (const key of extra) {
        const near = didYouMean(key, free);
        unknown.push(
          `${key}: unknown argument${near ? `; did you mean "${near}"?` : `; known: ${[...names].join(", ") || "none"}`}`,
        );
      }
    }
    value = Object.fromEntries(Object.entries(sent).filter(([key]) => names.has(key)));
  }
  if (input.schema === undefined) return unknown.length > 0 ? { problem: list(unknown) } : { args: {} };
  const result = await validate(input.schema, value);
  const issues = result.issues?.map((issue) => telling(issue, input.json)) ?? [];
  const wrong = inWords(issues, value);
  if (wrong.length + unknown.length > 0) return { problem: list([...wrong, ...unknown]) };
  return { args: result.issues ? undefined : result.value };
}
