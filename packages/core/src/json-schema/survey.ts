import { messageOf } from "../errors.ts";
import { isRecord, type Json, type JsonObject } from "../json.ts";
import { didYouMean } from "../options.ts";
import { compilePattern, isRiskyPattern } from "../pattern.ts";
import { shownValue } from "../text.ts";
import { expansion, resolvePointer, SCHEMA_LISTS, SCHEMA_MAPS, subschemas } from "./document.ts";

/** Levels and subschemas a document may have: far above what people write, low enough to bound the work it causes. */
const MAX_DEPTH = 64;
const MAX_NODES = 20_000;
/** Subschemas one value may be checked against when references are followed, before any check has a time limit. */
const MAX_EXPANSION = 10_000;
/** Bytes of a value that is checked without a time limit where nothing takes more than linear time. */
const SMALL = 4_096;
/** Steps of patterns that are nothing: those of one quadratic pattern on a small value. */
const STEPS = SMALL ** 2;

const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

/** A dialect of JSON Schema that values can be checked against; drafts 3 to 6 are read as draft-07. */
export type SchemaDialect = "2020-12" | "2019-09" | "draft-07";

/** One thing that is wrong with a JSON Schema document, and where. */
export interface SchemaFault {
  /** `not_compiled` and `too_slow` come up when the document is compiled; the others are found by looking at it. */
  readonly code:
    | "unsupported_dialect"
    | "outside_reference"
    | "broken_reference"
    | "unsupported_keyword"
    | "illegal_type"
    | "illegal_pattern"
    | "malformed"
    | "too_large"
    | "not_compiled"
    | "too_slow";
  /** Place in the document, such as `.properties.a.type`; empty for the whole. */
  readonly path: string;
  readonly problem: string;
}

/** What a look at a document tells, before anything is compiled. */
export interface SchemaSurvey {
  /** Why nothing can be checked against it. */
  readonly fault?: SchemaFault;
  /** Patterns that are no regular expressions in JavaScript: a check leaves them out. */
  readonly patterns: readonly SchemaFault[];
  /** Bytes of a value up to which a check needs no time limit. Zero: patterns that can backtrack, references without end. */
  readonly freeBytes: number;
}

/**
 * Whose document it is. An author's is held to JSON Schema 2020-12 and to what every peer understands; a peer's is read as
 * far as it can be.
 */
export type SchemaRules = "author" | "peer";

const ORDER: ReadonlyArray<readonly [RegExp, SchemaDialect]> = [
  [/^https?:\/\/json-schema\.org\/(?:draft\/2020-12\/)?schema#?$/, "2020-12"],
  [/^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, "2019-09"],
  [/^https?:\/\/json-schema\.org\/draft-0[3-7]\/schema#?$/, "draft-07"],
];

/** The dialects a document may be written in, the most likely first; none when it names one that is not supported. */
export function dialectsOf({ $schema }: JsonObject): readonly SchemaDialect[] {
  if (typeof $schema !== "string") return ["2020-12", "draft-07"]; // servers older than the rule write either
  return ORDER.filter(([name]) => name.test($schema)).map(([, dialect]) => dialect);
}

/** `.properties.a.type: "x" is no type`, for an error or a report. */
export function describeFault({ path, problem }: SchemaFault): string {
  return path ? `${path}: ${problem}` : problem;
}

/** Carries the first fault out of the walk. */
class Refusal extends Error {
  readonly fault: SchemaFault;
  constructor(code: SchemaFault["code"], path: string, problem: string) {
    super(problem);
    this.fault = { code, path, problem };
  }
}

/** The power of a text's length that a pattern may take in time; infinite where it may be exponential. */
function degreeOf(pattern: string): number {
  if (isRiskyPattern(pattern)) return Number.POSITIVE_INFINITY;
  // each repetition may be tried at every length, and the whole from every start
  return 1 + (pattern.match(/[*+]|\{\d+,/g) ?? []).length;
}

function patternFault(pattern: string, path: string): SchemaFault | undefined {
  try {
    compilePattern(pattern);
    return undefined;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.slice(0, 200) : "?";
    return { code: "illegal_pattern", path, problem: `${shownValue(pattern)} is no regular expression (${reason})` };
  }
}

function checkTypes(type: Json, path: string): void {
  for (const name of [type].flat()) {
    if (typeof name === "string" && TYPES.includes(name)) continue;
    const near = typeof name === "string" ? didYouMean(name.slice(0, 100), TYPES) : undefined;
    const hint = near ? `did you mean "${near}"?` : `use ${TYPES.join(", ")}`;
    throw new Refusal("illegal_type", `${path}.type`, `${shownValue(name)} is no type; ${hint}`);
  }
}

function checkLists(node: JsonObject, path: string, author: boolean): void {
  const wrong = (keyword: string, expected: string): never => {
    throw new Refusal("malformed", `${path}.${keyword}`, `expected ${expected}`);
  };
  for (const [keyword, value] of Object.entries(node)) {
    const list = Array.isArray(value) ? value : undefined;
    if (keyword === "required" && !list?.every((name) => typeof name === "string"))
      wrong(keyword, "a list of property names");
    if (keyword === "enum" && !list) wrong(keyword, "a list of values");
    if (SCHEMA_LISTS.has(keyword) && (!list || (author && list.length === 0)))
      wrong(keyword, "a list of schemas that is not empty");
    if (SCHEMA_MAPS.has(keyword) && !isRecord(value)) wrong(keyword, "an object of schemas");
    if (keyword === "items" && author && list)
      wrong(keyword, "one schema; schemas for places in a list are prefixItems");
  }
}

/**
 * Looks at a JSON Schema document before anybody relies on it: dialect, local references, legal types and patterns, bounded
 * size, and what checking a value may cost. Nothing is compiled or fetched, and nothing is thrown.
 *
 * @param rules whose document it is. Default `"peer"`
 * @example surveySchema({ type: "objct" }).fault // { code: "illegal_type", path: ".type", problem: '"objct" is no type; did you mean "object"?' }
 */
export function surveySchema(root: JsonObject, rules: SchemaRules = "peer"): SchemaSurvey {
  const author = rules === "author";
  const patterns: SchemaFault[] = [];
  const seen = new Set<JsonObject>();
  /** What references point at: it may lie where no keyword leads. */
  const targets: Array<[node: JsonObject, path: string]> = [];
  let unbounded = false;
  let degree = 1;
  let costly = 0;

  const weigh = (power: number): void => {
    costly += power > 1 ? 1 : 0;
    degree = Math.max(degree, power);
  };
  const checkPattern = (pattern: string, path: string): void => {
    const fault = patternFault(pattern, path);
    if (fault) patterns.push(fault);
    else weigh(degreeOf(pattern));
  };
  const checkReference = (reference: Json, path: string, embedded: boolean): void => {
    if (typeof reference !== "string") throw new Refusal("malformed", path, "a reference is a string");
    if (!reference.startsWith("#") && (author || root.$id === undefined)) {
      const problem = `${shownValue(reference)} points outside the document; only local references (#/…) are followed`;
      throw new Refusal("outside_reference", path, problem);
    }
    // with an $id of its own, other spellings may be local too, and local ones mean something else; the compiler finds out
    if (embedded || !reference.startsWith("#")) {
      unbounded = true;
      return;
    }
    const target = resolvePointer(root, reference);
    if (target === undefined)
      throw new Refusal("broken_reference", path, `${shownValue(reference)} points at nothing in the document`);
    if (isRecord(target)) targets.push([target, reference]);
  };
  const look = (node: Json, path: string, depth: number, above: boolean): void => {
    if (typeof node === "boolean") return;
    if (!isRecord(node)) throw new Refusal("malformed", path, `expected a schema, got ${shownValue(node)}`);
    const schema = node;
    if (seen.has(schema)) return;
    seen.add(schema);
    if (depth > MAX_DEPTH) throw new Refusal("too_large", path, `nested deeper than ${MAX_DEPTH} levels`);
    if (seen.size > MAX_NODES) throw new Refusal("too_large", path, `more than ${MAX_NODES} subschemas`);
    // up to draft-07, `#name` is an anchor
    const embedded = above || (depth > 0 && typeof schema.$id === "string" && !schema.$id.startsWith("#"));
    if (author && depth > 0 && "$id" in schema)
      throw new Refusal("malformed", `${path}.$id`, "only the whole document may have an $id");
    if ("type" in schema) checkTypes(schema.type ?? null, path);
    if (typeof schema.pattern === "string") checkPattern(schema.pattern, `${path}.pattern`);
    else if ("pattern" in schema) throw new Refusal("malformed", `${path}.pattern`, "a pattern is a string");
    for (const name of Object.keys(isRecord(schema.patternProperties) ? schema.patternProperties : {})) {
      checkPattern(name, `${path}.patternProperties`);
    }
    if ("$ref" in schema) checkReference(schema.$ref ?? null, `${path}.$ref`, embedded);
    for (const keyword of ["$dynamicRef", "$recursiveRef"]) {
      if (!(keyword in schema)) continue;
      const problem = "dynamic references are not supported; use $ref";
      if (author) throw new Refusal("unsupported_keyword", `${path}.${keyword}`, problem);
      unbounded = true;
    }
    // every item is compared with every other
    if (schema.uniqueItems === true) weigh(2);
    checkLists(schema, path, author);
    for (const [name, child] of subschemas(schema)) look(child, `${path}.${name}`, depth + 1, embedded);
  };

  try {
    const dialects = dialectsOf(root);
    if (dialects.length === 0 || (author && !dialects.includes("2020-12"))) {
      const known = author ? "write JSON Schema 2020-12" : "2020-12, 2019-09 and draft-07 are";
      const problem = `the dialect ${shownValue(root.$schema, 200)} is not supported; ${known}`;
      throw new Refusal("unsupported_dialect", ".$schema", problem);
    }
    look(root, "", 0, false);
    for (const [target, path] of targets) look(target, path, 0, false); // a target may add others
    const visits = targets.length > 0 ? expansion(root) : costly;
    if (unbounded || visits > MAX_EXPANSION) return { patterns, freeBytes: 0 };
    const free = costly > 0 ? Math.floor((STEPS / visits) ** (1 / degree)) : SMALL;
    return { patterns, freeBytes: free > 1 ? free : 0 };
  } catch (error) {
    if (error instanceof Refusal) return { fault: error.fault, patterns, freeBytes: 0 };
    // nested beyond the stack, or an object that is no JSON
    const problem = messageOf(error);
    return { fault: { code: "malformed", path: "", problem }, patterns, freeBytes: 0 };
  }
}

/** The document without patterns JavaScript cannot read, and without what depends on them. */
export function withoutIllegalPatterns(root: JsonObject): JsonObject {
  const copy = structuredClone(root);
  const seen = new Set<JsonObject>();
  const clean = (node: Json | undefined): void => {
    if (!isRecord(node)) return;
    const schema = node;
    if (seen.has(schema)) return;
    seen.add(schema);
    if (typeof schema.pattern === "string" && patternFault(schema.pattern, "")) delete schema.pattern;
    const { patternProperties } = schema;
    if (isRecord(patternProperties)) {
      for (const pattern of Object.keys(patternProperties)) {
        if (!patternFault(pattern, "")) continue;
        delete patternProperties[pattern];
        // what the pattern would have allowed must not be refused now
        delete schema.additionalProperties;
        delete schema.unevaluatedProperties;
      }
    }
    clean(resolvePointer(copy, schema.$ref));
    for (const [, child] of subschemas(schema)) clean(child);
  };
  clean(copy);
  return copy;
}
