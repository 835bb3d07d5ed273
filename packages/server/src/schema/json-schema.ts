import { ajvIssues, ConfigError, compilePattern, isSchema, type Schema, TenonError, withinTime } from "@tenon/core";
import type { ValidateFunction } from "ajv/dist/2020.js";
import { checkDocument } from "./document.ts";

/** A JSON Schema (2020-12) written by hand; arguments it describes have the type `Record<string, unknown>`. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  /** Keeps schema libraries' schemas out of this type: they have their own. */
  readonly "~standard"?: undefined;
  readonly [keyword: string]: unknown;
}

/** What `input` and `output` of a definition may be: a schema library's schema, or JSON Schema. */
export type AnySchema = Schema | JsonSchema;

/** Milliseconds one value may be checked for when the schema allows expensive checking. */
const MAX_CHECK_MS = 500;

async function compile(schema: object, where: string): Promise<ValidateFunction> {
  // loaded when the first value arrives: servers without hand-written JSON Schema never pay for it
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  const regExp = Object.assign((pattern: string) => compilePattern(pattern), { code: "compilePattern" });
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    verbose: true,
    validateFormats: false,
    logger: false,
    code: { regExp },
  });
  try {
    return ajv.compile(schema);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ConfigError(`${where} is not a valid JSON Schema: ${reason}`, { code: "schema", cause });
  }
}

/**
 * Makes a schema of a JSON Schema (2020-12) document: local `$ref` only, nothing is fetched, format names are notes. The
 * validator is compiled once, with the first value.
 *
 * @typeParam T what the document describes, as far as the compiler is concerned
 * @param where how the document is called in errors
 * @throws ConfigError `code: "schema"` for another dialect, an outside reference, an illegal type or pattern
 * @example server.tool("greet", { input: jsonSchema<{ name: string }>({ type: "object", properties: { name: { type: "string" } }, required: ["name"] }) }, ({ name }) => `Hello ${name}`)
 */
export function jsonSchema<T = Record<string, unknown>>(document: JsonSchema, where = "jsonSchema"): Schema<T, T> {
  const { schema, costly } = checkDocument(document, where);
  let compiled: Promise<ValidateFunction> | undefined;
  const validate = async (value: unknown) => {
    compiled ??= compile(schema, where);
    const check = await compiled;
    try {
      const ok = costly ? withinTime(() => check(value) === true, MAX_CHECK_MS) : check(value) === true;
      return ok ? { value: value as T } : { issues: ajvIssues(check.errors ?? [], schema) }; // the document describes T, says its author
    } catch (cause) {
      // an endless reference overflows the stack, an expensive one runs out of time
      throw new TenonError(
        `${where}: checking the value was stopped; its schema recurses without end or costs too much`,
        {
          code: "schema_cost",
          cause,
        },
      );
    }
  };
  const { $schema: dialect } = document;
  const said = dialect === undefined ? schema : { $schema: dialect, ...schema };
  const say = () => structuredClone(said);
  return { "~standard": { version: 1, vendor: "json-schema", validate, jsonSchema: { input: say, output: say } } };
}

/**
 * Any accepted kind of schema as one kind.
 * @throws ConfigError `code: "schema"` when it is none
 */
export function toSchema(given: AnySchema, where: string): Schema {
  // what says it is a schema library's is checked as one, so that the error can name the library
  if (isSchema(given) || "~standard" in Object(given)) return given as Schema; // jsonSchemaOf refuses it if it is not
  return jsonSchema(given as JsonSchema, where); // checkDocument refuses what is no document
}
