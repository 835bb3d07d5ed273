import { ConfigError, type Infer, isRecord, type JsonObject, type Schema } from "@tenon/core";
import { describeIssues, isSchema, jsonSchemaOf, validate } from "@tenon/core/internal";
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

/** One question of several: a shape, whose message is then its name, or both. */
export type NamedQuestion = Shape | { readonly message: string; readonly shape: Shape };

/** The answer to a {@link NamedQuestion}. */
export type AnswerTo<Q> = Q extends { readonly message: string; readonly shape: infer S extends Shape }
  ? Answer<AnswerOf<S>>
  : Answer<AnswerOf<Q>>;

/**
 * Several of the given values.
 * @example const answer = await ctx.elicit("Which?", multi(["red", "green"]))
 */
export function multi<const T extends string>(choices: readonly T[] | Readonly<Record<T, string>>): MultiChoice<T> {
  return { multi: choices };
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

interface Choice {
  readonly const: string;
  readonly title?: unknown;
}

/** The values a list may hold; undefined when it is not a list of enum values. */
function itemValues(items: unknown): readonly Choice[] | undefined {
  const { enum: values, anyOf, oneOf = anyOf } = isRecord(items) ? items : {};
  const choices = Array.isArray(values) ? values.map((value: unknown) => ({ const: value })) : oneOf;
  const fits = (choice: unknown): choice is Choice => isRecord(choice) && typeof choice.const === "string";
  return Array.isArray(choices) && choices.every(fits) ? choices : undefined;
}

/** A list's items in one of the two spellings of the restricted schema: with a title for each value, or without. */
function restrictItems(items: unknown): JsonObject {
  const choices = itemValues(items) ?? [];
  const titled = choices.flatMap(({ const: value, title }) =>
    typeof title === "string" ? [{ const: value, title }] : [],
  );
  if (titled.length === choices.length && titled.length > 0) return { anyOf: titled };
  return { type: "string", enum: choices.map((choice) => choice.const) };
}

/** Refuses what the restricted schema of a form cannot say, naming the field. */
function checkField(name: string, schema: unknown): void {
  const found = isRecord(schema) ? schema : {};
  if (
    (found.type === "array" && itemValues(found.items)) ||
    (typeof found.type === "string" && primitives.has(found.type))
  ) {
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

/** The formats of the restricted schema: peers refuse a request with any other. */
const formats: ReadonlySet<unknown> = new Set(["email", "uri", "date", "date-time"]);

function restrict(schema: unknown): JsonObject {
  const out: JsonObject = {};
  for (const [key, value] of Object.entries(isRecord(schema) ? schema : {})) {
    if (!kept.has(key)) continue;
    // Zod writes the safe-integer range and a regular expression beside known formats: noise for a form
    if ((key === "minimum" || key === "maximum") && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER) continue;
    if (key === "pattern" && isRecord(schema) && formats.has(schema.format)) continue;
    if (key === "format" && !formats.has(value)) continue; // the answer is held to it all the same
    if (key === "const" && typeof value === "string") out.enum = [value];
    else out[key] = key === "items" ? restrictItems(value) : (value as JsonObject[string]); // JSON Schema is JSON
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
    if (Object.keys(properties).length === 0 && isRecord(json.additionalProperties)) {
      throw new ConfigError("ctx.elicit: a form has fields with names of their own; a record of any names has none", {
        code: "shape",
      });
    }
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
  if (typeof shape !== "object" || shape === null) {
    throw new ConfigError(
      `ctx.elicit: ${JSON.stringify(shape)} is no shape; give a schema, a list of values, { value: "Title" } or multi([…])`,
      { code: "shape" },
    );
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
