import { ConfigError, isRecord, type JsonObject } from "@tenon/core";
import { canonicalJson, didYouMean, digest } from "@tenon/core/internal";
import { checkArguments } from "../../tool/arguments.ts";
import { flatten } from "./flatten.ts";
import { toGemini } from "./gemini.ts";
import { normalise } from "./normalise.ts";
import { restore } from "./restore.ts";

/** A schema for a model, and how its argument names are called on the wire where they had to change. */
export interface ModelSchema {
  readonly schema: JsonObject;
  readonly wireNames: ReadonlyMap<string, string>;
}

/** Anthropic's rule for names of arguments (the outermost ones only). */
const LEGAL = /^[a-zA-Z0-9_.-]{1,64}$/;

function legalName(name: string, taken: ReadonlySet<string>): string {
  const safe = name.replace(/[^a-zA-Z0-9_.-]/gu, "_");
  if (safe !== "" && safe.length <= 64 && !taken.has(safe)) return safe;
  const mark = Buffer.from(digest(["argument", name]), "base64url")
    .toString("hex")
    .slice(0, 8);
  return `${safe.slice(0, 55)}_${mark}`; // a clash of marks as well would need 2^32 names
}

type Node = ReturnType<typeof normalise>;
type Flat = ReturnType<typeof flatten>;

function withLegalNames(flat: Flat): { schema: Flat; wireNames: ReadonlyMap<string, string> } {
  const names = Object.keys(flat.properties);
  if (names.every((name) => LEGAL.test(name))) return { schema: flat, wireNames: new Map() };
  const taken = new Set(names.filter((name) => LEGAL.test(name)));
  const wireNames = new Map<string, string>();
  const modelNames = new Map<string, string>();
  for (const name of names) {
    if (LEGAL.test(name)) continue;
    const legal = legalName(name, taken);
    taken.add(legal);
    wireNames.set(legal, name);
    modelNames.set(name, legal);
  }
  const properties = Object.entries(flat.properties).map(([name, node]) => {
    const legal = modelNames.get(name);
    if (legal === undefined) return [name, node] as const;
    const called = `Called ${JSON.stringify(name.slice(0, 200))}.`;
    return [
      legal,
      { ...node, description: node.description ? `${called} ${String(node.description)}` : called },
    ] as const;
  });
  const required = Array.isArray(flat.required) ? flat.required.map((name) => modelNames.get(name) ?? name) : undefined;
  const schema = { ...flat, properties: Object.fromEntries(properties), ...(required && { required }) };
  return { schema, wireNames };
}

/** The given schema itself where it needed no change. */
function sameOr(given: unknown, made: Flat): JsonObject {
  // what was given and what was built from it are JSON
  const changed = made as JsonObject;
  try {
    return canonicalJson(given) === canonicalJson(made) ? (given as JsonObject) : changed;
  } catch {
    return changed; // not JSON, or too deep to compare
  }
}

type Rules = (node: Node, schema: unknown) => ModelSchema;

/** What OpenAI takes: an object with properties, without alternatives at its root. */
const flat: Rules = (node, schema) => ({ schema: sameOr(schema, flatten(node)), wireNames: new Map() });

/** The rules there are, by whose they are. A provider with others is one entry more. */
const RULES = {
  openai: flat,
  deepseek: flat,
  anthropic(node, schema) {
    const { schema: legal, wireNames } = withLegalNames(flatten(node));
    return { schema: sameOr(schema, legal), wireNames };
  },
  gemini: (node) => ({ schema: toGemini(node) as JsonObject, wireNames: new Map() }), // JSON from JSON
  strictest: flat,
} as const satisfies Readonly<Record<string, Rules>>;

/** Whose rules a schema must fit. `strictest` fits OpenAI, DeepSeek, Anthropic and what is compatible with one of them. */
export type ModelProvider = keyof typeof RULES;

/** `toModelSchema` with the names that had to change. */
export function modelSchemaOf(schema: unknown, provider: ModelProvider = "strictest"): ModelSchema {
  const known = Object.keys(RULES);
  if (!known.includes(provider)) {
    const near = didYouMean(String(provider), known);
    throw new ConfigError(
      `There are no schema rules for the provider "${String(provider)}"; ${near ? `did you mean "${near}"?` : `known: ${known.join(", ")}`}`,
      { code: "unknown_provider", data: { near } },
    );
  }
  const rules: Rules = RULES[provider];
  return rules(normalise(schema), schema);
}

/**
 * A tool's JSON Schema in a form that a provider accepts: an object with properties, no references, nothing the provider
 * refuses. It may allow more than the original, which stays what arguments are checked against; what is lost is said in the
 * description where words can say it. Bounded in depth, size and time, whatever a server sends.
 *
 * @param provider default `"strictest"`
 * @throws ConfigError `code: "unknown_provider"`; never because of the schema
 * @example
 * toModelSchema({ type: "object", anyOf: [{ required: ["a"] }, { required: ["b"] }] }, "openai");
 * // { type: "object", properties: { a: {}, b: {} }, description: "At least one of these must be given: (a) or (b)." }
 */
export function toModelSchema(schema: unknown, provider: ModelProvider = "strictest"): JsonObject {
  return modelSchemaOf(schema, provider).schema;
}

/** Arguments of a model as the original schema wants them; the given ones, with wire names, when that cannot be reached. */
export function restoreArguments(
  original: unknown,
  args: Readonly<Record<string, unknown>>,
  wireNames: ReadonlyMap<string, string> = new Map(),
): Record<string, unknown> {
  const named = Object.fromEntries(Object.entries(args).map(([name, value]) => [wireNames.get(name) ?? name, value]));
  if (checkArguments(original, named).length === 0) return named;
  const restored = restore(original, named);
  return isRecord(restored) && checkArguments(original, restored).length === 0 ? restored : named;
}

/**
 * What a model that saw `toModelSchema(schema, provider)` meant in terms of the original: argument names on the wire, and
 * numbers, booleans, enum values and objects that came as text where the original takes no text. Arguments that fit, and those
 * that cannot be made to fit, are left as they are.
 *
 * @throws ConfigError `code: "unknown_provider"`
 * @example
 * fromModelArguments({ type: "object", properties: { n: { enum: [1, 2] } } }, { n: "2" }, "gemini"); // { n: 2 }
 */
export function fromModelArguments(
  schema: unknown,
  args: Readonly<Record<string, unknown>>,
  provider: ModelProvider = "strictest",
): Record<string, unknown> {
  return restoreArguments(schema, args, modelSchemaOf(schema, provider).wireNames);
}
