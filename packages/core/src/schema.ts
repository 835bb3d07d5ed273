import { isDeepStrictEqual } from "node:util";
import { ConfigError, messageOf } from "./errors.ts";
import { isRecord, type JsonObject } from "./json.ts";
import { shownValue } from "./text.ts";

/** One thing wrong with a value, and where. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

type SchemaResult<T> = { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

/**
 * A schema library's schema: Standard Schema V1 with JSON Schema output (https://standardschema.dev).
 * Zod 4.2 and later and ArkType 2.2 fit as they are, Valibot through `toStandardJsonSchema` of `@valibot/to-json-schema`.
 */
export interface Schema<Output = unknown, Input = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema: {
      readonly input: (options: { target: "draft-2020-12" }) => Record<string, unknown>;
      readonly output: (options: { target: "draft-2020-12" }) => Record<string, unknown>;
    };
  };
}

/** The type a schema produces. */
export type Infer<S> = S extends Schema<infer Output, infer _Input> ? Output : never;

/** The `~standard` part of a schema library's schema, whatever it can do. */
function standardOf(value: unknown): Record<string, unknown> | undefined {
  // ArkType's schemas are functions
  if ((typeof value !== "object" && typeof value !== "function") || value === null || !("~standard" in value)) {
    return undefined;
  }
  const standard = value["~standard"];
  return isRecord(standard) ? standard : undefined;
}

/** Whether `value` is a schema that can validate and say itself as JSON Schema. */
export function isSchema(value: unknown): value is Schema {
  const standard = standardOf(value);
  return standard !== undefined && "jsonSchema" in standard && "validate" in standard;
}

function notASchema(value: unknown): string {
  const vendor = standardOf(value)?.vendor;
  if (vendor === "valibot") {
    return "is a Valibot schema without JSON Schema: wrap it in toStandardJsonSchema(…) of @valibot/to-json-schema";
  }
  if (vendor !== undefined)
    return `is a schema of ${String(vendor)} that cannot say itself as JSON Schema; update the library`;
  return "is not a schema: expected a Standard Schema with JSON Schema output, such as z.object({ … }) of Zod 4.2 or later";
}

/**
 * The JSON Schema (2020-12) of a schema.
 * @param side `"input"` describes what callers send, `"output"` what the schema produces
 * @throws ConfigError `code: "schema"` when the schema holds something JSON Schema cannot say (a Date, a transform)
 */
export function jsonSchemaOf(schema: Schema, side: "input" | "output", where: string): JsonObject {
  if (!isSchema(schema)) {
    throw new ConfigError(`${where} ${notASchema(schema)}`, { code: "schema" });
  }
  try {
    const { vendor, jsonSchema } = schema["~standard"];
    const { $schema: dialect, ...json } = jsonSchema[side]({ target: "draft-2020-12" });
    // schema libraries always write the dialect, which says nothing; an author who wrote it by hand wants it to stay
    const kept = vendor === "json-schema" && dialect !== undefined ? { $schema: dialect, ...json } : json;
    return kept as JsonObject; // a JSON Schema document is JSON by the interface's contract
  } catch (cause) {
    const reason = messageOf(cause);
    throw new ConfigError(`${where} has no JSON Schema: ${reason}`, { code: "schema", cause });
  }
}

/** `a.b[0]` for an issue's path; empty for the value itself. */
export function issuePath(issue: SchemaIssue): string {
  let text = "";
  for (const part of issue.path ?? []) {
    const key = typeof part === "object" ? part.key : part;
    text += typeof key === "number" ? `[${key}]` : `${text && "."}${String(key)}`;
  }
  return text;
}

/** The issue's message without the path some libraries repeat in it. */
export function issueMessage(issue: SchemaIssue): string {
  const path = issuePath(issue);
  return path && issue.message.startsWith(`${path} `) ? issue.message.slice(path.length + 1) : issue.message;
}

/** Every issue on one line: `orderId: expected string; items[0].n: too small`. */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  return issues.map((issue) => `${issuePath(issue) || "value"}: ${issueMessage(issue)}`).join("; ");
}

/** The value at an issue's path, and whether there is one: own properties and elements only, whatever the path says. */
export function valueAt(
  value: unknown,
  path: SchemaIssue["path"],
): { readonly there: boolean; readonly value?: unknown } {
  let at: unknown = value;
  for (const part of path ?? []) {
    const key = typeof part === "object" ? part.key : part;
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return { there: false };
    at = Reflect.get(at, key);
  }
  return { there: true, value: at };
}

/** A value in a few words: `"x"`, `7`, `a list of 3`, `an object`. */
function inShort(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (isRecord(value)) return "an object";
  if (value === undefined) return "nothing";
  if (typeof value === "string") return shownValue(value.slice(0, 100), 60);
  return typeof value === "number" || typeof value === "boolean" || value === null
    ? String(value)
    : `a ${typeof value}`;
}

/** How issues are said. */
export interface IssueWords {
  /** How the value itself is called. */
  readonly whole: string;
  /**
   * What a reader may see: a value that is not the same there is called by its kind only. Left out, everything may be seen.
   */
  readonly shown?: unknown;
}

/** Characters of one issue; a pattern or a constant may be of any length. */
const MAX_WORDS = 2_000;
/** Most libraries say what they got; the others get it added. */
const SAYS = /\b(received|was|got|missing|unknown|needs)\b/i;

/** One wrong field, as plain data. */
export interface WrongField {
  /** `a.b[0]`; empty for the value itself. */
  readonly path: string;
  /** A whole line: `n: must be an integer or null, got "x"`. */
  readonly message: string;
}

/**
 * Each issue with a line that says where, what was expected and what came. The one wording of wrong values, for servers,
 * clients and agents.
 *
 * @example wrongFields([{ path: ["n"], message: "must be an integer" }], { n: "x" }, { whole: "arguments" })
 * // [{ path: "n", message: 'n: must be an integer, got "x"' }]
 */
export function wrongFields(issues: readonly SchemaIssue[], value: unknown, words: IssueWords): WrongField[] {
  const got = (issue: SchemaIssue): string => {
    const found = valueAt(value, issue.path).value;
    const known = "shown" in words ? valueAt(words.shown, issue.path) : { value: found };
    const open = typeof found === "object" || found === undefined || isDeepStrictEqual(known.value, found);
    return `, got ${open ? inShort(found) : `a ${typeof found}`}`;
  };
  return issues.map((issue) => {
    const path = issuePath(issue);
    const message = issueMessage(issue).slice(0, MAX_WORDS);
    return { path, message: `${path || words.whole}: ${message}${SAYS.test(message) ? "" : got(issue)}` };
  });
}

/** Validates and returns the schema's output or the issues; never throws for a wrong value. */
export async function validate<T>(schema: Schema<T>, value: unknown): Promise<SchemaResult<T>> {
  return schema["~standard"].validate(value);
}
