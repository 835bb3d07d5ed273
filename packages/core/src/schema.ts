import { ConfigError } from "./errors.ts";
import { isRecord, type JsonObject } from "./json.ts";

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
    const reason = cause instanceof Error ? cause.message : String(cause);
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

/** Validates and returns the schema's output or the issues; never throws for a wrong value. */
export async function validate<T>(schema: Schema<T>, value: unknown): Promise<SchemaResult<T>> {
  return schema["~standard"].validate(value);
}
