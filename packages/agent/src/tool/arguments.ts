import { interopSafeParse, isInteropZodSchema } from "@langchain/core/utils/types";
import { isRecord, type JsonObject, type SchemaIssue } from "@tenon/core";
import { type IssueWords, type WrongField, wrongFields } from "@tenon/core/internal";
import { schemaCheck } from "@tenon/core/internal/schema-check";

/** Wrong fields a model or a person is told: more would not be read. */
const MAX_FIELDS = 8;

function issuesOf(schema: unknown, args: unknown): readonly SchemaIssue[] {
  if (isInteropZodSchema(schema)) {
    const result = interopSafeParse(schema, args);
    return result.success ? [] : result.error.issues;
  }
  if (!isRecord(args)) return [{ path: [], message: "must be an object" }];
  if (!isRecord(schema)) return [];
  const compiled = schemaCheck(schema as JsonObject); // the look at it refuses what is no JSON
  if (compiled.fault) return [];
  const verdict = compiled.check(args);
  return verdict.ok === false ? verdict.issues : [];
}

/**
 * What is wrong with `args` by a tool's schema (JSON Schema or Zod); empty when they fit, or when the schema cannot be used
 * here at all: the server has the last word. Never throws.
 */
export function checkArguments(
  schema: unknown,
  args: unknown,
  words: IssueWords = { whole: "arguments" },
): readonly WrongField[] {
  return wrongFields(issuesOf(schema, args).slice(0, MAX_FIELDS), args, words);
}

/** The wrong fields in one line for a model or a person: `amount: must be a number, got "x"; id: required, but missing`. */
export function describeWrong(fields: readonly WrongField[]): string {
  return fields.map(({ message }) => message).join("; ");
}
