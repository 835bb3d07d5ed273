import { ConfigError, type JsonObject, type Schema, TenonError } from "@tenon/core";
import { describeFault, isSchema } from "@tenon/core/internal";
import type { Verdict } from "@tenon/core/internal/schema-check";
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

/** What the checker is told of every document: it may not try another dialect. */
const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** The compiled check, loaded with the first value: servers without hand-written JSON Schema never pay for the compiler. */
async function compile(document: JsonObject, where: string): Promise<(value: unknown) => Verdict> {
  const { schemaCheck } = await import("@tenon/core/internal/schema-check");
  const compiled = schemaCheck(document);
  if (!compiled.fault) return compiled.check;
  throw new ConfigError(`${where} is not a valid JSON Schema: ${describeFault(compiled.fault)}`, { code: "schema" });
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
  const schema = checkDocument(document, where);
  let compiled: Promise<(value: unknown) => Verdict> | undefined;
  const validate = async (value: unknown) => {
    compiled ??= compile({ $schema: DIALECT, ...schema }, where);
    const check = await compiled;
    const verdict = check(value);
    if (verdict.ok === true) return { value: value as T }; // the document describes T, says its author
    if (verdict.ok === false) return { issues: verdict.issues };
    // an endless reference overflows the stack, an expensive one runs out of time
    throw new TenonError(
      `${where}: checking the value was stopped; its schema recurses without end or costs too much`,
      { code: "schema_cost", cause: verdict.cause },
    );
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
  return jsonSchema(given, where); // checkDocument refuses what is no document
}
