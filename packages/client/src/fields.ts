import { isRecord, ProtocolError } from "@tenon/core";
import { textAt } from "./pages.ts";
import type { Field, FieldOption } from "./types.ts";

/** What is wrong with one entry of an answer. */
export interface FieldIssue {
  readonly field: string;
  readonly message: string;
}

type Schema = Record<string, unknown>;

function numbers<K extends string>(schema: Schema, ...keys: K[]): { [key in K]?: number } {
  const out: { [key in K]?: number } = {};
  for (const key of keys) {
    const value = schema[key];
    if (typeof value === "number") out[key] = value;
  }
  return out;
}

function texts(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.every((item) => typeof item === "string") ? value : undefined;
}

/** The options of an `enum` (with `enumNames`), or of a `oneOf`/`anyOf` of `const` with `title`. */
function parseOptions(schema: Schema): FieldOption[] | undefined {
  const values = texts(schema.enum);
  if (values) {
    const titles = texts(schema.enumNames);
    return values.map((value, index) => ({ value, title: titles?.[index] ?? value }));
  }
  const branches = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(branches)) return undefined;
  const options: FieldOption[] = [];
  for (const branch of branches) {
    if (!isRecord(branch) || typeof branch.const !== "string") return undefined;
    options.push({ value: branch.const, title: textAt(branch, "title") ?? branch.const });
  }
  return options;
}

function parseField(name: string, schema: Schema, required: boolean): Field | undefined {
  const title = textAt(schema, "title");
  const description = textAt(schema, "description");
  const base = {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    required,
  };
  const options = parseOptions(schema);
  const initial = schema.default;
  if (options && (schema.type === "string" || schema.type === undefined)) {
    return { kind: "choice", options, ...(typeof initial === "string" && { default: initial }), ...base };
  }
  switch (schema.type) {
    case "string": {
      const format = textAt(schema, "format");
      const pattern = textAt(schema, "pattern");
      return {
        kind: "text",
        ...numbers(schema, "minLength", "maxLength"),
        ...(pattern !== undefined && { pattern }),
        ...(format !== undefined && { format }),
        ...(typeof initial === "string" && { default: initial }),
        ...base,
      };
    }
    case "number":
    case "integer":
      return {
        kind: "number",
        integer: schema.type === "integer",
        ...numbers(schema, "minimum", "maximum"),
        ...(typeof initial === "number" && { default: initial }),
        ...base,
      };
    case "boolean":
      return { kind: "boolean", ...(typeof initial === "boolean" && { default: initial }), ...base };
    case "array": {
      const several = isRecord(schema.items) ? parseOptions(schema.items) : undefined;
      if (!several) return undefined;
      const chosen = texts(initial);
      return {
        kind: "choices",
        options: several,
        ...numbers(schema, "minItems", "maxItems"),
        ...(chosen && { default: chosen }),
        ...base,
      };
    }
  }
  return undefined;
}

/**
 * The entries of a form from the restricted schema of an elicitation (revision 2026-07-28, Elicitation): a flat object of
 * texts, numbers, booleans and choices.
 * @throws ProtocolError `unsupported_question` naming the property that is none of these
 */
export function parseFields(schema: unknown): Field[] {
  if (!isRecord(schema) || !isRecord(schema.properties)) {
    throw new ProtocolError("a form question needs a schema of type object with properties", {
      code: "unsupported_question",
    });
  }
  const required = texts(schema.required) ?? [];
  return Object.entries(schema.properties).map(([name, property]) => {
    const field = isRecord(property) ? parseField(name, property, required.includes(name)) : undefined;
    if (field) return field;
    throw new ProtocolError(
      `the question's property "${name}" is not a text, number, boolean or choice: ${JSON.stringify(property)}`,
      { code: "unsupported_question", data: { property: name } },
    );
  });
}

const FORMATS: Record<string, RegExp> = {
  email: /^[^\s@]+@[^\s@]+\.[^\s@]+$/,
  date: /^\d{4}-\d{2}-\d{2}$/,
  "date-time": /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2})$/,
};

function formatIssue(value: string, format: string): string | undefined {
  if (format === "uri") return URL.canParse(value) ? undefined : "must be an address such as https://example.com";
  const shape = FORMATS[format];
  if (!shape) return undefined;
  const ok = shape.test(value) && (!format.startsWith("date") || !Number.isNaN(Date.parse(value)));
  return ok ? undefined : `must be a valid ${format}`;
}

function textIssue(field: Field & { kind: "text" }, value: string): string | undefined {
  const { minLength, maxLength, pattern, format } = field;
  const length = [...value].length;
  if (minLength !== undefined && length < minLength) return `must have at least ${minLength} characters`;
  if (maxLength !== undefined && length > maxLength) return `must have at most ${maxLength} characters`;
  if (pattern !== undefined) {
    try {
      if (!new RegExp(pattern, "u").test(value)) return `must match ${pattern}`;
    } catch {
      // the server's pattern is no regular expression; it can check the answer itself
    }
  }
  return format === undefined ? undefined : formatIssue(value, format);
}

function names(options: readonly FieldOption[]): string {
  return options.map((option) => option.value).join(", ");
}

/** What is wrong with a value for a field, or undefined. */
function valueIssue(field: Field, value: unknown): string | undefined {
  switch (field.kind) {
    case "text":
      return typeof value === "string" ? textIssue(field, value) : "must be a text";
    case "number":
      if (typeof value !== "number" || !Number.isFinite(value)) return "must be a number";
      if (field.integer && !Number.isInteger(value)) return "must be a whole number";
      if (field.minimum !== undefined && value < field.minimum) return `must be at least ${field.minimum}`;
      if (field.maximum !== undefined && value > field.maximum) return `must be at most ${field.maximum}`;
      return undefined;
    case "boolean":
      return typeof value === "boolean" ? undefined : "must be true or false";
    case "choice":
      return field.options.some((option) => option.value === value)
        ? undefined
        : `must be one of: ${names(field.options)}`;
    case "choices": {
      const chosen = texts(value);
      if (!chosen) return "must be a list of choices";
      const stray = chosen.find((item) => !field.options.some((option) => option.value === item));
      if (stray !== undefined) return `"${stray}" is none of: ${names(field.options)}`;
      if (new Set(chosen).size < chosen.length) return "must not name a choice twice";
      if (field.minItems !== undefined && chosen.length < field.minItems) return `choose at least ${field.minItems}`;
      if (field.maxItems !== undefined && chosen.length > field.maxItems) return `choose at most ${field.maxItems}`;
      return undefined;
    }
  }
}

/** Everything wrong with the content of an answer; empty when it may be sent. */
export function checkAnswer(
  fields: readonly Field[],
  content: Readonly<Record<string, unknown>> | undefined,
): FieldIssue[] {
  const given = content ?? {};
  const issues: FieldIssue[] = [];
  for (const field of fields) {
    const value = Object.hasOwn(given, field.name) ? given[field.name] : undefined;
    const message = value === undefined ? (field.required ? "is required" : undefined) : valueIssue(field, value);
    if (message) issues.push({ field: field.name, message });
  }
  for (const key of Object.keys(given)) {
    if (!fields.some((field) => field.name === key)) issues.push({ field: key, message: "was not asked for" });
  }
  return issues;
}

/** A typed value, `undefined` for an entry that is left out, or what is wrong. */
export type FieldInput =
  | { readonly value: string | number | boolean | string[] | undefined }
  | { readonly issue: string };

const YES = ["yes", "y", "true", "是"];
const NO = ["no", "n", "false", "否"];

/** An option by its value, its title or its 1-based number; a value wins over a number. */
function findOption(options: readonly FieldOption[], text: string): string | undefined {
  const lower = text.toLowerCase();
  const exact = options.find((option) => option.value === text || option.title === text);
  const near = options.find((option) => option.value.toLowerCase() === lower || option.title.toLowerCase() === lower);
  const numbered = /^\d+$/.test(text) ? options[Number(text) - 1] : undefined;
  return (exact ?? near ?? numbered)?.value;
}

function read(field: Field, text: string): FieldInput {
  switch (field.kind) {
    case "text":
      return { value: text };
    case "number":
      return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)
        ? { value: Number(text) }
        : { issue: "must be a number" };
    case "boolean": {
      const lower = text.toLowerCase();
      if (YES.includes(lower)) return { value: true };
      return NO.includes(lower) ? { value: false } : { issue: "answer yes or no" };
    }
    case "choice": {
      const value = findOption(field.options, text);
      return value === undefined ? { issue: `must be one of: ${names(field.options)}` } : { value };
    }
    case "choices": {
      const value: string[] = [];
      for (const part of text.split(/[,，、]/).map((item) => item.trim())) {
        if (part === "") continue;
        const option = findOption(field.options, part);
        if (option === undefined) return { issue: `"${part}" is none of: ${names(field.options)}` };
        value.push(option);
      }
      return { value };
    }
  }
}

/**
 * What a person typed for a field, as its value: numbers from digits, yes/no words, choices by value, title or number,
 * several separated by commas. Nothing typed means the default, or leaves out an entry that is not required.
 *
 * @example parseFieldText({ kind: "boolean", name: "ok", required: true }, "是") // { value: true }
 */
export function parseFieldText(field: Field, text: string): FieldInput {
  const typed = text.trim();
  if (typed === "") {
    if (field.default !== undefined) {
      return { value: typeof field.default === "object" ? [...field.default] : field.default };
    }
    return field.required ? { issue: "is required" } : { value: undefined };
  }
  const input = read(field, typed);
  if ("issue" in input) return input;
  const issue = valueIssue(field, input.value);
  return issue ? { issue } : input;
}
