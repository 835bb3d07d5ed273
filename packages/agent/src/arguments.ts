import { interopSafeParse, isInteropZodSchema } from "@langchain/core/utils/types";
import { isRecord, withinTime } from "@tenon/core";
import { Ajv } from "ajv";
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";

/** One argument that does not fit its tool's schema. */
export interface ArgumentIssue {
  /** Dotted path of the argument, for example `items[0].amount`; `arguments` for the whole. */
  readonly field: string;
  readonly message: string;
}

/** Servers write patterns for many dialects; one that no JavaScript engine accepts must not make its tool uncallable. */
const tolerantRegExp = Object.assign(
  (pattern: string, flags: string): RegExp => {
    for (const attempt of [flags, ""]) {
      try {
        return new RegExp(pattern, attempt);
      } catch {
        // the next attempt is more lenient; the server validates again in any case
      }
    }
    return /(?:)/;
  },
  { code: "new RegExp" },
);

/** A server's pattern may take for ever on a text that a model writes. */
const MAX_CHECK_MS = 500;

const compiled = new WeakMap<object, ValidateFunction | "unusable">();

function validatorOf(schema: object): ValidateFunction | "unusable" {
  const known = compiled.get(schema);
  if (known) return known;
  let validate: ValidateFunction | "unusable" = "unusable"; // a reference elsewhere, a malformed keyword: the server has the last word
  // one instance per schema, since two tools may use the same $id; older servers write tuples as draft 7 does
  for (const Dialect of [Ajv2020, Ajv]) {
    const ajv = new Dialect({
      strict: false,
      allErrors: true,
      validateSchema: false,
      validateFormats: false,
      ownProperties: true,
      logger: false,
      code: { regExp: tolerantRegExp },
    });
    try {
      // `$schema` would name a dialect that is not loaded, `$async` would make Ajv answer with a promise
      validate = ajv.compile({ ...schema, $schema: undefined, $async: undefined });
      break;
    } catch {
      // the other dialect may understand it
    }
  }
  compiled.set(schema, validate);
  return validate;
}

function fieldOf(path: string): string {
  const parts = path
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  return parts.reduce((text, part) => (/^\d+$/.test(part) ? `${text}[${part}]` : text ? `${text}.${part}` : part), "");
}

function describe(error: ErrorObject): ArgumentIssue {
  const at = fieldOf(error.instancePath);
  const inside = (key: unknown) => (at ? `${at}.${String(key)}` : String(key));
  switch (error.keyword) {
    case "required":
      return { field: inside(error.params.missingProperty), message: "is required" };
    case "additionalProperties":
      return { field: inside(error.params.additionalProperty), message: "is not an argument of this tool" };
    case "enum":
      return { field: at || "arguments", message: `must be one of ${JSON.stringify(error.params.allowedValues)}` };
    default:
      return { field: at || "arguments", message: error.message ?? "is not valid" };
  }
}

/**
 * What is wrong with `args` by a tool's schema (JSON Schema 2020-12 or Zod); empty when they fit, or when the schema cannot be
 * used here at all. Never throws.
 */
export function checkArguments(schema: unknown, args: unknown): readonly ArgumentIssue[] {
  if (isInteropZodSchema(schema)) {
    const result = interopSafeParse(schema, args);
    if (result.success) return [];
    return result.error.issues.map((issue) => ({ field: issue.path.join(".") || "arguments", message: issue.message }));
  }
  if (!isRecord(args)) return [{ field: "arguments", message: "must be an object" }];
  if (!isRecord(schema)) return [];
  const validate = validatorOf(schema);
  if (validate === "unusable") return [];
  try {
    if (withinTime(() => validate(args), MAX_CHECK_MS)) return [];
  } catch {
    return []; // a pattern that backtracks, or references without an end: the server has the last word
  }
  const seen = new Map<string, ArgumentIssue>();
  for (const error of validate.errors ?? []) {
    const issue = describe(error);
    if (!seen.has(issue.field)) seen.set(issue.field, issue); // the first reason per field is the plainest
  }
  return [...seen.values()].slice(0, 8);
}

/** The issues in one line for a model or a person: `amount must be number; orderId is required`. */
export function describeArgumentIssues(issues: readonly ArgumentIssue[]): string {
  return issues.map((issue) => `${issue.field} ${issue.message}`).join("; ");
}
