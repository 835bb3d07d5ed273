import {
  ajvIssues,
  compilePattern,
  expansion,
  isRecord,
  isRiskyPattern,
  type Json,
  type JsonObject,
  resolvePointer,
  type SchemaIssue,
  subschemas,
  TenonError,
  withinTime,
} from "@tenon/core";
import type { ValidateFunction } from "ajv/dist/2020.js";
import { jsonSize } from "./size.ts";

/** Levels and subschemas of a document that is still compiled: far above what people write. */
const MAX_DEPTH = 64;
const MAX_NODES = 20_000;
/** Milliseconds for compiling a document, and for checking one value where that can take long. */
const MAX_COMPILE_MS = 2_000;
const MAX_CHECK_MS = 500;
/** Subschemas one value is checked against when references are followed, until that is bounded in time. */
const MAX_EXPANSION = 10_000;
/** Bytes of a small value. Stopping what takes long costs a thread, a tenth of a call: larger values are worth it. */
const SMALL = 4_096;
const TYPES = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

/** What a look at a document tells, before anything is compiled. */
export interface SchemaSurvey {
  /** Why it cannot be compiled. */
  readonly unusable?: string;
  /** Patterns that are no regular expressions in JavaScript, by their place; they are not checked. */
  readonly ignored: readonly string[];
  /** Checking even a small value may take long: a pattern that can backtrack, references without end, `uniqueItems`. */
  readonly costly: boolean;
}

/** Whether a pattern may take more than quadratic time: that, on a small value, is nothing. */
function mayBacktrack(pattern: string): boolean {
  return isRiskyPattern(pattern) || (pattern.match(/[*+]|\{\d+,/g) ?? []).length > 1;
}

function legal(pattern: string): boolean {
  try {
    compilePattern(pattern);
    return true;
  } catch {
    return false;
  }
}

function referenceProblem(root: JsonObject, reference: unknown): string | undefined {
  if (typeof reference !== "string") return "a $ref that is not a text";
  // with an $id of its own, other spellings may be local too; the compiler finds out
  if (!reference.startsWith("#")) {
    return root.$id === undefined ? `$ref ${JSON.stringify(reference)}, which is outside the document` : undefined;
  }
  return resolvePointer(root, reference) ? undefined : `$ref ${JSON.stringify(reference)}, which points at nothing`;
}

/** Looks at a schema that came from a server. Nothing is compiled or fetched, and nothing is thrown. */
export function surveySchema(root: JsonObject): SchemaSurvey {
  const ignored: string[] = [];
  let nodes = 0;
  let costly = false;
  const look = (node: Json, path: string, depth: number): string | undefined => {
    if (!isRecord(node)) return undefined;
    const schema = node as JsonObject; // inside JSON
    if (depth > MAX_DEPTH) return `more than ${MAX_DEPTH} levels`;
    if (++nodes > MAX_NODES) return `more than ${MAX_NODES} subschemas`;
    for (const type of [schema.type ?? []].flat()) {
      if (typeof type !== "string" || !TYPES.has(type))
        return `the type ${JSON.stringify(type)} at ${path || "its root"}`;
    }
    const patterns = [
      schema.pattern,
      ...Object.keys(isRecord(schema.patternProperties) ? schema.patternProperties : {}),
    ];
    for (const pattern of patterns) {
      if (typeof pattern !== "string") continue;
      if (mayBacktrack(pattern)) costly = true;
      if (!legal(pattern)) ignored.push(`${JSON.stringify(pattern.slice(0, 100))} at ${path || "its root"}`);
    }
    if (schema.uniqueItems === true) costly = true;
    if ("$dynamicRef" in schema || "$recursiveRef" in schema) costly = true;
    const problem = "$ref" in schema ? referenceProblem(root, schema.$ref) : undefined;
    if (problem) return `${problem} (at ${path || "its root"})`;
    for (const [name, child] of subschemas(schema)) {
      const found = look(child, path ? `${path}.${name}` : name, depth + 1);
      if (found) return found;
    }
    return undefined;
  };
  const unusable = look(root, "", 0);
  if (!unusable && expansion(root) > MAX_EXPANSION) costly = true;
  return { ...(unusable !== undefined && { unusable }), ignored, costly };
}

/** The document without patterns JavaScript cannot read, and without what depends on them. */
function withoutIllegalPatterns(root: JsonObject): JsonObject {
  const copy = structuredClone(root);
  const clean = (node: Json): void => {
    if (!isRecord(node)) return;
    const schema = node as JsonObject; // inside JSON
    if (typeof schema.pattern === "string" && !legal(schema.pattern)) delete schema.pattern;
    const { patternProperties } = schema;
    if (isRecord(patternProperties)) {
      for (const pattern of Object.keys(patternProperties)) {
        if (legal(pattern)) continue;
        delete (patternProperties as JsonObject)[pattern]; // inside JSON
        // what the pattern would have allowed must not be refused now
        delete schema.additionalProperties;
        delete schema.unevaluatedProperties;
      }
    }
    for (const [, child] of subschemas(schema)) clean(child);
  };
  clean(copy);
  return copy;
}

type Dialect = "2020-12" | "2019-09" | "draft-07";
/** Reports every issue, or stops at the first: a large wrong answer must not become a million errors. */
export type Thoroughness = "all" | "first";

interface Compiler {
  compile(schema: object): ValidateFunction;
  removeSchema(schema: object): unknown;
}
/** Compilers in use, and how many documents each has read: it never forgets one, so it is replaced in time. */
const compilers = new Map<string, { readonly made: Promise<Compiler>; uses: number }>();
const MAX_USES = 500;

async function makeCompiler(dialect: Dialect, thoroughness: Thoroughness): Promise<Compiler> {
  const regExp = Object.assign((pattern: string) => compilePattern(pattern), { code: "compilePattern" });
  const options = {
    strict: false,
    allErrors: thoroughness === "all",
    verbose: true,
    // format names are notes
    validateFormats: false,
    // half of the time of a first check; what the keywords need is checked anyway
    validateSchema: false,
    // `toString` is nobody's argument
    ownProperties: true,
    // `$ref: "#"` needs it; every document is removed once it is compiled, so that two tools may use one $id
    addUsedSchema: true,
    inlineRefs: false,
    // 19.99 is a multiple of 0.01, whatever a division of binary fractions says
    multipleOfPrecision: 8,
    logger: false as const,
    code: { regExp },
  };
  // loaded with the first check: a client must start fast
  if (dialect === "2020-12") return new (await import("ajv/dist/2020.js")).Ajv2020(options);
  if (dialect === "2019-09") return new (await import("ajv/dist/2019.js")).Ajv2019(options);
  return new (await import("ajv/dist/ajv.js")).Ajv(options);
}

/** A compiled schema, or why there is none. */
export type SchemaCheck = { readonly check: (value: unknown) => Verdict } | { readonly problem: string };

/** What a check found; `stopped` says why there is no answer. */
export type Verdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly issues: readonly SchemaIssue[] }
  | { readonly ok: "stopped"; readonly reason: string };

function dialectsOf(root: JsonObject): readonly Dialect[] {
  const { $schema } = root;
  if (typeof $schema !== "string") return ["2020-12", "draft-07"]; // servers older than the rule write either
  if ($schema.includes("2019-09")) return ["2019-09"];
  return /draft-0[3-7]/.test($schema) ? ["draft-07"] : ["2020-12"];
}

async function compile(root: JsonObject, thoroughness: Thoroughness): Promise<SchemaCheck> {
  let survey: SchemaSurvey;
  let schema: JsonObject;
  try {
    survey = surveySchema(root);
    if (survey.unusable) return { problem: survey.unusable };
    // the dialect is chosen below; an asynchronous check would answer with a promise
    const {
      $schema: _dialect,
      $async: _never,
      ...rest
    } = survey.ignored.length > 0 ? withoutIllegalPatterns(root) : root;
    schema = rest;
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
  let problem = "";
  for (const dialect of dialectsOf(root)) {
    const key = `${dialect} ${thoroughness}`;
    const present = compilers.get(key) ?? { made: makeCompiler(dialect, thoroughness), uses: 0 };
    if (++present.uses < MAX_USES) compilers.set(key, present);
    else compilers.delete(key);
    const compiler = await present.made;
    try {
      const validate = withinTime(() => compiler.compile(schema), MAX_COMPILE_MS);
      return { check: checker(validate, schema, survey.costly) };
    } catch (error) {
      // one that was stopped in the middle may be in any state
      problem ||= error instanceof Error ? error.message : String(error);
      if (!(error instanceof TenonError)) continue;
      compilers.delete(key);
      // another dialect would take as long, and everything else waits meanwhile
      break;
    } finally {
      compiler.removeSchema(schema);
    }
  }
  return { problem };
}

function checker(validate: ValidateFunction, schema: JsonObject, costly: boolean): (value: unknown) => Verdict {
  return (value) => {
    try {
      const run = () => validate(value) === true;
      const bounded = costly || jsonSize(value, SMALL) > SMALL;
      if (bounded ? withinTime(run, MAX_CHECK_MS) : run()) return { ok: true };
      return { ok: false, issues: ajvIssues(validate.errors ?? [], schema) };
    } catch (error) {
      // an endless reference overflows the stack
      return { ok: "stopped", reason: error instanceof Error ? error.message : String(error) };
    } finally {
      // the errors hold on to the value
      validate.errors = null;
    }
  };
}

const checks = {
  all: new WeakMap<JsonObject, Promise<SchemaCheck>>(),
  first: new WeakMap<JsonObject, Promise<SchemaCheck>>(),
};

/**
 * The check of a schema that came from a server: JSON Schema 2020-12, 2019-09 or draft-07 as its `$schema` says, compiled
 * once per document, references only inside it, under a time limit. Never throws.
 */
export function schemaCheck(schema: JsonObject, thoroughness: Thoroughness): Promise<SchemaCheck> {
  const known = checks[thoroughness].get(schema) ?? compile(schema, thoroughness);
  checks[thoroughness].set(schema, known);
  return known;
}
