import { isRecord, ProtocolError } from "@tenon/core";
import { shownValue } from "@tenon/core/internal";
import { textAt } from "../catalog/pages.ts";
import type { Field, FieldOption } from "../types/questions.ts";
import { valueProblem } from "./field-values.ts";

/** Entries one form may have, and options one entry may have: more than a person answers. */
const MAX_FIELDS = 100;
const MAX_OPTIONS = 1_000;

type Schema = Record<string, unknown>;

function numbers<K extends string>(schema: Schema, ...keys: K[]): { [key in K]?: number } {
  const out: { [key in K]?: number } = {};
  for (const key of keys) {
    const value = schema[key];
    if (typeof value === "number" && Number.isFinite(value)) out[key] = value;
  }
  return out;
}

function texts(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.every((item) => typeof item === "string") ? value : undefined;
}

function toOptions(values: readonly string[], titles: readonly (string | undefined)[]): FieldOption[] | undefined {
  if (values.length === 0 || values.length > MAX_OPTIONS) return undefined;
  const options = new Map<string, FieldOption>();
  for (const [index, value] of values.entries()) {
    if (!options.has(value)) options.set(value, { value, title: titles[index] ?? value });
  }
  return [...options.values()];
}

/** The options of an `enum` (with the older revision's `enumNames`), of a `oneOf`/`anyOf` of `const` with `title`, or one `const`. */
function parseOptions(schema: Schema): FieldOption[] | undefined {
  const values = texts(schema.enum);
  if (values) return toOptions(values, texts(schema.enumNames) ?? []);
  if (typeof schema.const === "string") return toOptions([schema.const], [textAt(schema, "title")]);
  const branches = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(branches)) return undefined;
  const named: [string, string | undefined][] = [];
  for (const branch of branches) {
    if (!isRecord(branch) || typeof branch.const !== "string") return undefined;
    named.push([branch.const, textAt(branch, "title")]);
  }
  return toOptions(
    named.map(([value]) => value),
    named.map(([, title]) => title),
  );
}

/** Libraries write an optional value as "this or null"; an answer leaves it out instead. */
function withoutNull(schema: Schema): { schema: Schema; nullable: boolean } {
  if (Array.isArray(schema.type) && schema.type.includes("null")) {
    const types = schema.type.filter((type) => type !== "null");
    return { schema: { ...schema, type: types.length === 1 ? types[0] : types }, nullable: true };
  }
  const branches = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(branches) || branches.length !== 2) return { schema, nullable: false };
  const inner = branches.find((branch) => isRecord(branch) && branch.type !== "null");
  const nothing = branches.some((branch) => isRecord(branch) && branch.type === "null");
  if (!nothing || !isRecord(inner)) return { schema, nullable: false };
  const { anyOf: _anyOf, oneOf: _oneOf, ...around } = schema;
  return { schema: { ...inner, ...around }, nullable: true };
}

/** The field without its default. */
function parseKind(
  schema: Schema,
  base: Pick<Field, "name" | "title" | "description" | "required">,
): Field | undefined {
  const options = parseOptions(schema);
  if (options && (schema.type === "string" || schema.type === undefined)) return { kind: "choice", options, ...base };
  switch (schema.type) {
    case "string": {
      const format = textAt(schema, "format");
      const pattern = textAt(schema, "pattern");
      return {
        kind: "text",
        ...numbers(schema, "minLength", "maxLength"),
        ...(pattern !== undefined && { pattern }),
        ...(format !== undefined && { format }),
        ...base,
      };
    }
    case "number":
    case "integer":
      return {
        kind: "number",
        integer: schema.type === "integer",
        ...numbers(schema, "minimum", "maximum"),
        ...base,
      };
    case "boolean":
      return { kind: "boolean", ...base };
    case "array": {
      const several = isRecord(schema.items) ? parseOptions(schema.items) : undefined;
      return several && { kind: "choices", options: several, ...numbers(schema, "minItems", "maxItems"), ...base };
    }
  }
  return undefined;
}

function parseField(name: string, given: Schema, listed: boolean): Field | undefined {
  const { schema, nullable } = withoutNull(given);
  const title = textAt(schema, "title");
  const description = textAt(schema, "description");
  const field = parseKind(schema, {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    required: listed && !nullable,
  });
  const initial = schema.default;
  // a default that does not fit would be refused when it is sent; then there is none
  if (!field || initial === undefined || valueProblem(field, initial)) return field;
  return { ...field, default: initial } as Field; // it fits the field, so it has the type of its default
}

/**
 * The entries of a form from the restricted schema of an elicitation (revisions 2025-11-25 and 2026-07-28, Elicitation): a
 * flat object of texts, numbers, booleans, choices and lists of choices. "This or null" is read as an entry that may be left
 * out; a default that breaks its own entry's rules is dropped.
 * @throws ProtocolError `unsupported_question` naming the property that is none of these
 */
export function parseFields(schema: unknown): Field[] {
  if (!isRecord(schema) || !isRecord(schema.properties)) {
    throw new ProtocolError("a form question needs a schema of type object with properties", {
      code: "unsupported_question",
    });
  }
  const required = texts(schema.required) ?? [];
  const properties = Object.entries(schema.properties);
  if (properties.length > MAX_FIELDS) {
    throw new ProtocolError(`a form question may have ${MAX_FIELDS} entries, this one has ${properties.length}`, {
      code: "unsupported_question",
    });
  }
  return properties.map(([name, property]) => {
    const field = isRecord(property) ? parseField(name, property, required.includes(name)) : undefined;
    if (field) return field;
    throw new ProtocolError(
      `the question's property ${shownValue(name)} is not a text, number, boolean or choice: ${shownValue(property, 200)}`,
      { code: "unsupported_question", data: { property: name } },
    );
  });
}
