import {
  ConfigError,
  describeIssues,
  type Infer,
  isRecord,
  isSchema,
  type JsonObject,
  jsonSchemaOf,
  type Schema,
  validate,
} from "@tenon/core";
import { refuseSecret } from "./secrets.ts";

/** Choices with titles: `{ value: "Title" }`. */
export type TitledChoices = Readonly<Record<string, string>>;
/** Several choices at once; made by {@link multi}. */
export interface MultiChoice<T extends string = string> {
  readonly multi: readonly T[] | TitledChoices;
}

/**
 * What `ctx.elicit` may ask for: a flat object schema, a single string, number or boolean schema, one of several values
 * (`["a", "b"]` or `{ a: "Title A" }`), or several of them (`multi([…])`).
 */
export type Shape = Schema | readonly string[] | TitledChoices | MultiChoice;

/** The type of an accepted answer to a shape. */
export type AnswerOf<S> = S extends Schema
  ? Infer<S>
  : S extends MultiChoice<infer T>
    ? T[]
    : S extends readonly (infer T)[]
      ? T
      : S extends TitledChoices
        ? keyof S & string
        : never;

/** A person's answer to a form. */
export type Answer<T> =
  | { readonly action: "accept"; readonly data: T }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

/**
 * Several of the given values.
 * @example const answer = await ctx.elicit("Which?", multi(["red", "green"]))
 */
export function multi<const T extends string>(choices: readonly T[] | Readonly<Record<T, string>>): MultiChoice<T> {
  return { multi: choices as readonly T[] | TitledChoices }; // a Record<T, string> is a TitledChoices
}

/** A shape made ready: the schema that goes out, and how an answer's content is read back. */
export interface CompiledShape {
  readonly schema: JsonObject;
  /** The accepted data, or what is wrong with the content. */
  read(content: unknown): Promise<{ data: unknown } | { problem: string }>;
}

function choiceSchema(choices: readonly string[] | TitledChoices): JsonObject {
  return Array.isArray(choices)
    ? { type: "string", enum: [...choices] }
    : {
        type: "string",
        oneOf: Object.entries(choices).map(([value, title]) => ({ const: value, title: String(title) })),
      };
}

function choiceValues(choices: readonly string[] | TitledChoices): string[] {
  return Array.isArray(choices) ? [...choices] : Object.keys(choices);
}

/** One property called `value`, which is how a scalar travels in a form. */
function scalar(
  schema: JsonObject,
  check: (value: unknown) => Promise<{ data: unknown } | { problem: string }>,
): CompiledShape {
  return {
    schema: { type: "object", properties: { value: schema }, required: ["value"] },
    read: async (content) => check(isRecord(content) ? content.value : undefined),
  };
}

const primitives = new Set(["string", "number", "integer", "boolean"]);

/** Refuses what the restricted schema of a form cannot say, naming the field. */
function checkField(name: string, schema: unknown): void {
  const found = isRecord(schema) ? schema : {};
  const list =
    found.type === "array" && isRecord(found.items) && (found.items.type === "string" || "anyOf" in found.items);
  if (list || (typeof found.type === "string" && primitives.has(found.type))) {
    refuseSecret(name, found);
    return;
  }
  throw new ConfigError(
    `ctx.elicit: the field "${name}" is ${typeof found.type === "string" ? `a ${found.type}` : "of a kind"} that a form cannot ask for; ` +
      "a form is flat: strings, numbers, booleans, enums and lists of enum values",
    { code: "shape", data: { field: name } },
  );
}

/** Keywords of the restricted schema (2026-07-28, elicitation); others are left out, since peers may refuse them. */
const kept = new Set(
  "type title description minLength maxLength pattern format minimum maximum default enum enumNames oneOf anyOf const items minItems maxItems".split(
    " ",
  ),
);

function restrict(schema: unknown): JsonObject {
  const out: JsonObject = {};
  for (const [key, value] of Object.entries(isRecord(schema) ? schema : {})) {
    if (!kept.has(key)) continue;
    // Zod writes the safe-integer range and a regular expression beside known formats: noise for a form
    if ((key === "minimum" || key === "maximum") && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER) continue;
    if (key === "pattern" && isRecord(schema) && typeof schema.format === "string") continue;
    out[key] = key === "items" ? restrict(value) : (value as JsonObject[string]); // JSON Schema is JSON
  }
  return out;
}

async function checkWith(schema: Schema, value: unknown): Promise<{ data: unknown } | { problem: string }> {
  const result = await validate(schema, value);
  return result.issues ? { problem: describeIssues(result.issues) } : { data: result.value };
}

/**
 * Makes a shape ready to be asked.
 * @throws ConfigError `code: "shape"` naming the field a form cannot ask for
 */
export function compileShape(shape: Shape): CompiledShape {
  if (isSchema(shape)) {
    const json = jsonSchemaOf(shape, "input", "the shape given to ctx.elicit");
    if (json.type !== "object") {
      checkField("value", json);
      return scalar(restrict(json), (value) => checkWith(shape, value));
    }
    const properties = isRecord(json.properties) ? json.properties : {};
    for (const [name, field] of Object.entries(properties)) checkField(name, field);
    return {
      schema: {
        type: "object",
        properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, restrict(field)])),
        ...(Array.isArray(json.required) && { required: json.required }),
      },
      read: (content) => checkWith(shape, content),
    };
  }
  if ("multi" in shape && !Array.isArray(shape) && typeof shape.multi === "object") {
    const values = choiceValues(shape.multi);
    const item = choiceSchema(shape.multi);
    const items: JsonObject = "oneOf" in item ? { anyOf: item.oneOf as JsonObject[] } : item; // choiceSchema wrote the list
    return scalar({ type: "array", items }, async (value) =>
      Array.isArray(value) && value.every((one) => values.includes(one))
        ? { data: value }
        : { problem: `expected a list of: ${values.join(", ")}` },
    );
  }
  const choices = shape as readonly string[] | TitledChoices; // the other members of Shape are handled above
  const values = choiceValues(choices);
  if (values.length === 0) throw new ConfigError("ctx.elicit: a choice needs at least one value", { code: "shape" });
  return scalar(choiceSchema(choices), async (value) =>
    typeof value === "string" && values.includes(value)
      ? { data: value }
      : { problem: `expected one of: ${values.join(", ")}` },
  );
}
