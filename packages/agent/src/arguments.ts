import { interopSafeParse, isInteropZodSchema } from "@langchain/core/utils/types";
import { isRecord, isRiskyPattern, withinTime } from "@tenon/core";
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
/** Once per schema: what takes longer is left to the server. */
const MAX_COMPILE_MS = 2_000;

/** Characters of arguments that a harmless pattern is fast on whatever they are. */
const SMALL = 4_096;

/** How long a check may take: `fast` for any arguments, for small ones, or nobody knows. */
type Cost = "fast" | "fast when small" | "unknown";

/** Being able to stop a check costs a thread, more than all the rest of a call: only what may need it gets one. */
function costOf(schema: unknown): Cost {
  let cost: Cost = "fast";
  const open: unknown[] = [schema];
  for (let seen = 0; open.length > 0; seen += 1) {
    const node = open.pop();
    if (seen > 20_000) return "unknown";
    if (Array.isArray(node)) open.push(...node);
    if (!isRecord(node)) continue;
    if ("$ref" in node || "$dynamicRef" in node || "$recursiveRef" in node || "uniqueItems" in node) return "unknown";
    const named = isRecord(node.patternProperties) ? Object.keys(node.patternProperties) : [];
    for (const pattern of [node.pattern, ...named]) {
      if (typeof pattern !== "string") continue;
      // with one repetition that is not itself repeated, time is quadratic at most
      if (isRiskyPattern(pattern) || (pattern.match(/[*+]|\{\d+,/g) ?? []).length > 1) return "unknown";
      cost = "fast when small";
    }
    open.push(...Object.values(node));
  }
  return cost;
}

interface Validator {
  readonly validate: ValidateFunction;
  readonly cost: Cost;
}

const compiled = new WeakMap<object, Validator | "unusable">();

function validatorOf(schema: object): Validator | "unusable" {
  const known = compiled.get(schema);
  if (known) return known;
  let found: Validator | "unusable" = "unusable"; // a reference elsewhere, a malformed keyword: the server has the last word
  // one instance per schema, since two tools may use the same $id; older servers write tuples as draft 7 does
  for (const Dialect of [Ajv2020, Ajv]) {
    const ajv = new Dialect({
      strict: false,
      allErrors: true,
      validateSchema: false,
      validateFormats: false,
      ownProperties: true,
      // 19.99 is a multiple of 0.01, whatever a division of binary fractions says
      multipleOfPrecision: 8,
      logger: false,
      code: { regExp: tolerantRegExp },
    });
    try {
      // `$schema` would name a dialect that is not loaded, `$async` would make Ajv answer with a promise
      const plain = { ...schema, $schema: undefined, $async: undefined };
      const validate = withinTime(() => ajv.compile(plain), MAX_COMPILE_MS);
      found = { validate, cost: costOf(schema) };
      break;
    } catch {
      // the other dialect may understand it
    }
  }
  compiled.set(schema, found);
  return found;
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
  const validator = validatorOf(schema);
  if (validator === "unusable") return [];
  const { validate, cost } = validator;
  try {
    const fast = cost === "fast" || (cost === "fast when small" && JSON.stringify(args).length <= SMALL);
    if (fast ? validate(args) : withinTime(() => validate(args), MAX_CHECK_MS)) return [];
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
