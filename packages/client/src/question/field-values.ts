import { shownValue, testPattern } from "@tenon/core/internal";
import { expectList } from "../expect.ts";
import type { Field, FieldOption } from "../types/questions.ts";

/** What is wrong with a value, for a program that says it in its own words. */
export type FieldProblem =
  | { readonly code: "required" | "not_asked" }
  | { readonly code: "type"; readonly expected: "text" | "number" | "whole number" | "boolean" | "choices" }
  | {
      readonly code: "too_short" | "too_long" | "too_small" | "too_large" | "too_few" | "too_many";
      readonly limit: number;
    }
  | { readonly code: "pattern"; readonly pattern: string }
  | { readonly code: "format"; readonly format: string; readonly example: string }
  | { readonly code: "choice"; readonly options: readonly FieldOption[] }
  | { readonly code: "twice" };

/** What is wrong with one entry of an answer. */
export interface FieldIssue {
  readonly field: string;
  /** What was expected and what was given, in English, ready to stand behind the field's name. */
  readonly message: string;
  readonly problem: FieldProblem;
  readonly given?: unknown;
}

/** A value together with what is wrong with it: in a list of choices, the one that is wrong. */
export interface ValueProblem {
  readonly problem: FieldProblem;
  readonly given: unknown;
}

const MAX_EMAIL = 254;
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const TIME = /^([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

function isDate(value: string): boolean {
  const [, year, month, day] = DATE.exec(value) ?? [];
  if (year === undefined) return false;
  const date = new Date(`${value}T00:00:00Z`);
  // the 30th of February would become a day of March
  return !Number.isNaN(date.getTime()) && date.getUTCMonth() + 1 === Number(month) && date.getUTCDate() === Number(day);
}

function isEmail(value: string): boolean {
  const at = value.lastIndexOf("@");
  const local = value.slice(0, at);
  const labels = value.slice(at + 1).split(".");
  if (at < 1 || value.length > MAX_EMAIL || local.length > 64 || /[\s@<>()[\],;:\\"]/.test(local)) return false;
  if (local.startsWith(".") || local.endsWith(".") || local.includes("..")) return false;
  return labels.length > 1 && labels.every((label) => /^[\p{L}\p{N}]([\p{L}\p{N}-]*[\p{L}\p{N}])?$/u.test(label));
}

/** The formats of the restricted schema; any other name is a note and checks nothing. */
const FORMATS: Readonly<Record<string, { example: string; fits: (value: string) => boolean }>> = {
  email: { example: "ann@example.com", fits: isEmail },
  uri: { example: "https://example.com/page", fits: (value) => !/[\s\p{Cc}]/u.test(value) && URL.canParse(value) },
  date: { example: "2026-07-28", fits: isDate },
  "date-time": {
    example: "2026-07-28T14:30:00Z",
    fits: (value) => {
      const [date = "", time = "", ...more] = value.split(/[Tt]/);
      return more.length === 0 && isDate(date) && TIME.test(time);
    },
  },
};

/** How a value of a text entry looks, where its format is one of the restricted schema's. */
export function exampleOf(field: Field): string | undefined {
  const format = field.kind === "text" ? field.format : undefined;
  return format !== undefined && Object.hasOwn(FORMATS, format) ? FORMATS[format]?.example : undefined;
}

function textProblem(field: Field & { kind: "text" }, value: string): FieldProblem | undefined {
  const { minLength, maxLength, pattern, format } = field;
  const length = [...value].length; // characters as JSON Schema counts them
  if (minLength !== undefined && length < minLength) return { code: "too_short", limit: minLength };
  if (maxLength !== undefined && length > maxLength) return { code: "too_long", limit: maxLength };
  // a pattern that is none, or takes too long, is the server's to check
  if (pattern !== undefined && testPattern(pattern, value) === "no match") return { code: "pattern", pattern };
  const known = format !== undefined && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  if (!known || format === undefined || known.fits(value)) return undefined;
  return { code: "format", format, example: known.example };
}

function numberProblem(field: Field & { kind: "number" }, value: unknown): FieldProblem | undefined {
  if (typeof value !== "number" || !Number.isFinite(value)) return { code: "type", expected: "number" };
  if (field.integer && !Number.isInteger(value)) return { code: "type", expected: "whole number" };
  if (field.minimum !== undefined && value < field.minimum) return { code: "too_small", limit: field.minimum };
  if (field.maximum !== undefined && value > field.maximum) return { code: "too_large", limit: field.maximum };
  return undefined;
}

function choicesProblem(field: Field & { kind: "choices" }, value: unknown): ValueProblem | undefined {
  const { options, minItems, maxItems } = field;
  if (!Array.isArray(value)) return { problem: { code: "type", expected: "choices" }, given: value };
  const stray = value.find((item) => !options.some((option) => option.value === item));
  if (stray !== undefined) return { problem: { code: "choice", options }, given: stray };
  const twice = value.find((item, index) => value.indexOf(item) !== index);
  if (twice !== undefined) return { problem: { code: "twice" }, given: twice };
  const count = value.length;
  if (minItems !== undefined && count < minItems)
    return { problem: { code: "too_few", limit: minItems }, given: value };
  if (maxItems !== undefined && count > maxItems)
    return { problem: { code: "too_many", limit: maxItems }, given: value };
  return undefined;
}

/** What is wrong with a value for a field, or undefined when it may be sent. */
export function valueProblem(field: Field, value: unknown): ValueProblem | undefined {
  const because = (problem: FieldProblem | undefined) => problem && { problem, given: value };
  switch (field.kind) {
    case "text":
      return because(typeof value === "string" ? textProblem(field, value) : { code: "type", expected: "text" });
    case "number":
      return because(numberProblem(field, value));
    case "boolean":
      return because(typeof value === "boolean" ? undefined : { code: "type", expected: "boolean" });
    case "choice": {
      const known = field.options.some((option) => option.value === value);
      return because(known ? undefined : { code: "choice", options: field.options });
    }
    case "choices":
      return choicesProblem(field, value);
  }
}

const MAX_NAMED = 20;

function names(options: readonly FieldOption[]): string {
  const named = options.slice(0, MAX_NAMED).map((option) => option.value);
  const more = options.length - named.length;
  return more > 0 ? `${named.join(", ")} and ${more} more` : named.join(", ");
}

const EXPECTED = {
  text: "a text",
  number: "a number",
  "whole number": "a whole number",
  boolean: "true or false",
  choices: "a list of choices",
};

/** A problem in English: what was expected, then what was given. */
export function describeProblem({ problem, given }: ValueProblem): string {
  const got = `, got ${shownValue(given, 60)}`;
  switch (problem.code) {
    case "required":
      return "is required";
    case "not_asked":
      return "was not asked for";
    case "type":
      return `must be ${EXPECTED[problem.expected]}${got}`;
    case "too_short":
      return `must have at least ${problem.limit} characters${got}`;
    case "too_long":
      return `must have at most ${problem.limit} characters${got}`;
    case "too_small":
      return `must be at least ${problem.limit}${got}`;
    case "too_large":
      return `must be at most ${problem.limit}${got}`;
    case "too_few":
      return `must have at least ${problem.limit} choices${got}`;
    case "too_many":
      return `must have at most ${problem.limit} choices${got}`;
    case "pattern":
      return `must match ${problem.pattern}${got}`;
    case "format":
      return `must be a valid ${problem.format} such as ${problem.example}${got}`;
    case "choice":
      return `must be one of: ${names(problem.options)}${got}`;
    case "twice":
      return `must not name a choice twice${got}`;
  }
}

function issueOf(field: string, found: ValueProblem): FieldIssue {
  const given = found.given === undefined ? {} : { given: found.given };
  return { field, message: describeProblem(found), problem: found.problem, ...given };
}

/**
 * Everything wrong with the content of an answer; empty when it may be sent.
 *
 * @example checkAnswer(fields, { age: 0 }) // [{ field: "age", message: "must be at least 1, got 0", … }]
 */
export function checkAnswer(
  fields: readonly Field[],
  content: Readonly<Record<string, unknown>> | undefined,
): FieldIssue[] {
  expectList(fields, "checkAnswer(fields, content): fields");
  const values = content ?? {};
  const issues: FieldIssue[] = [];
  for (const field of fields) {
    const value = Object.hasOwn(values, field.name) ? values[field.name] : undefined;
    if (value !== undefined) {
      const found = valueProblem(field, value);
      if (found) issues.push(issueOf(field.name, found));
    } else if (field.required) issues.push(issueOf(field.name, { problem: { code: "required" }, given: undefined }));
  }
  for (const key of Object.keys(values)) {
    if (!fields.some((field) => field.name === key)) {
      issues.push(issueOf(key, { problem: { code: "not_asked" }, given: values[key] }));
    }
  }
  return issues;
}
