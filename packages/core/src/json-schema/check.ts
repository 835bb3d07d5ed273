/**
 * `@tenon/core/schema-check`: values against JSON Schema, with Ajv. It is a module of its own, so that whoever must start fast
 * loads it with the first check.
 */
import { Ajv, type Options, type ValidateFunction } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import { messageOf, TenonError } from "../errors.ts";
import { type JsonObject, jsonSize } from "../json.ts";
import { compilePattern, withinTime } from "../pattern.ts";
import type { SchemaIssue } from "../schema.ts";
import { ajvIssues } from "./issues.ts";
import { dialectsOf, type SchemaDialect, type SchemaFault, surveySchema, withoutIllegalPatterns } from "./survey.ts";

/** Milliseconds for compiling a document, and for checking one value where that can take long. */
const MAX_COMPILE_MS = 2_000;
const MAX_CHECK_MS = 500;

/** Reports every issue, or stops at the first: a large wrong answer must not become a million errors. */
export type Thoroughness = "all" | "first";

/** What a check found; `stopped` says why there is no answer. */
export type Verdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly issues: readonly SchemaIssue[] }
  | { readonly ok: "stopped"; readonly reason: string; readonly cause: unknown };

/** A compiled document, or why there is none. */
export type SchemaCheck =
  | { readonly check: (value: unknown) => Verdict; readonly fault?: undefined }
  | { readonly fault: SchemaFault };

const DIALECTS = { "2020-12": Ajv2020, "2019-09": Ajv2019, "draft-07": Ajv };

/** Compilers in use, and how many documents each has read: it never forgets one, so it is replaced in time. */
const compilers = new Map<string, { readonly compiler: Ajv; uses: number }>();
const MAX_USES = 500;

function compilerFor(dialect: SchemaDialect, thoroughness: Thoroughness): Ajv {
  const key = `${dialect} ${thoroughness}`;
  const present = compilers.get(key) ?? { compiler: makeCompiler(dialect, thoroughness), uses: 0 };
  if (++present.uses < MAX_USES) compilers.set(key, present);
  else compilers.delete(key);
  return present.compiler;
}

function makeCompiler(dialect: SchemaDialect, thoroughness: Thoroughness): Ajv {
  const options: Options = {
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
    logger: false,
    code: { regExp: Object.assign((pattern: string) => compilePattern(pattern), { code: "compilePattern" }) },
  };
  return new DIALECTS[dialect](options);
}

function compile(root: JsonObject, thoroughness: Thoroughness): SchemaCheck {
  const { fault, patterns, freeBytes } = surveySchema(root);
  if (fault) return { fault };
  let schema: JsonObject;
  try {
    // the dialect is chosen below; an asynchronous check would answer with a promise
    const { $schema: _dialect, $async: _never, ...rest } = patterns.length > 0 ? withoutIllegalPatterns(root) : root;
    schema = rest;
  } catch (error) {
    return { fault: { code: "malformed", path: "", problem: reasonOf(error) } };
  }
  let first: SchemaFault | undefined;
  for (const dialect of dialectsOf(root)) {
    const compiler = compilerFor(dialect, thoroughness);
    try {
      const validate = withinTime(() => compiler.compile(schema), MAX_COMPILE_MS);
      return { check: checker(validate, schema, freeBytes) };
    } catch (error) {
      const slow = error instanceof TenonError;
      first ??= { code: slow ? "too_slow" : "not_compiled", path: "", problem: reasonOf(error) };
      if (!slow) continue;
      // one that was stopped in the middle may be in any state
      compilers.delete(`${dialect} ${thoroughness}`);
      // another dialect would take as long, and everything else waits meanwhile
      break;
    } finally {
      compiler.removeSchema(schema);
    }
  }
  return { fault: first ?? { code: "unsupported_dialect", path: ".$schema", problem: "no dialect that is known" } };
}

function checker(validate: ValidateFunction, schema: JsonObject, freeBytes: number): (value: unknown) => Verdict {
  return (value) => {
    try {
      const run = () => validate(value) === true;
      // being able to stop costs a thread, more than all the rest of a call: only what may need it gets one
      const bounded = freeBytes === 0 || jsonSize(value, freeBytes) > freeBytes;
      if (bounded ? withinTime(run, MAX_CHECK_MS) : run()) return { ok: true };
      return { ok: false, issues: ajvIssues(validate.errors ?? [], schema) };
    } catch (cause) {
      // an endless reference overflows the stack
      return { ok: "stopped", reason: reasonOf(cause), cause };
    } finally {
      // the errors hold on to the value
      validate.errors = null;
    }
  };
}

function reasonOf(error: unknown): string {
  return messageOf(error);
}

/** One check per document and thoroughness, for as long as the document itself is held. */
const checks = { all: new WeakMap<JsonObject, SchemaCheck>(), first: new WeakMap<JsonObject, SchemaCheck>() };

/**
 * The check of a JSON Schema document: 2020-12, 2019-09 or draft-07 as its `$schema` says, references only inside it, nothing
 * is fetched, format names are notes. Compiled once per document and under a time limit; checking is synchronous, and stopped
 * after half a second where it can take long. Never throws.
 *
 * A document that must not be changed afterwards: what was compiled stays.
 * @example
 * const compiled = schemaCheck({ type: "object", properties: { n: { type: ["integer", "null"] } } });
 * if (compiled.fault) throw new Error(describeFault(compiled.fault));
 * const verdict = compiled.check({ n: "x" }); // { ok: false, issues: [{ path: ["n"], message: "must be an integer or null" }] }
 */
export function schemaCheck(schema: JsonObject, thoroughness: Thoroughness = "all"): SchemaCheck {
  const known = checks[thoroughness].get(schema) ?? compile(schema, thoroughness);
  checks[thoroughness].set(schema, known);
  return known;
}
