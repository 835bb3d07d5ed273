import { interopSafeParse, isInteropZodSchema } from "@langchain/core/utils/types";
import { schemaIssues } from "@tenon/client";
import { isRecord, issueMessage, issuePath, type JsonObject, type SchemaIssue } from "@tenon/core";

/** One argument that does not fit its tool's schema. */
export interface ArgumentIssue {
  /** Dotted path of the argument, for example `items[0].amount`; `arguments` for the whole. */
  readonly field: string;
  readonly message: string;
}

const MAX_ISSUES = 8;
/** What a model reads better than the schema's own words. */
const WORDS: Record<string, string> = {
  "required, but missing": "is required",
  "unknown property": "is not an argument of this tool",
};

function inWords(issue: SchemaIssue): ArgumentIssue {
  const message = issueMessage(issue);
  return { field: issuePath(issue) || "arguments", message: WORDS[message] ?? message };
}

/**
 * What is wrong with `args` by a tool's schema (JSON Schema or Zod); empty when they fit, or when the schema cannot be used here
 * at all. Never throws, and never takes long, whatever pattern a server sent.
 */
export async function checkArguments(schema: unknown, args: unknown): Promise<readonly ArgumentIssue[]> {
  if (isInteropZodSchema(schema)) {
    const result = interopSafeParse(schema, args);
    if (result.success) return [];
    return result.error.issues.map((issue) => ({ field: issue.path.join(".") || "arguments", message: issue.message }));
  }
  if (!isRecord(args)) return [{ field: "arguments", message: "must be an object" }];
  if (!isRecord(schema)) return [];
  const issues = await schemaIssues(schema as JsonObject, args); // a JSON Schema is JSON
  return issues.slice(0, MAX_ISSUES).map(inWords);
}

/** The issues in one line for a model or a person: `amount must be number; orderId is required`. */
export function describeArgumentIssues(issues: readonly ArgumentIssue[]): string {
  return issues.map((issue) => `${issue.field} ${issue.message}`).join("; ");
}
