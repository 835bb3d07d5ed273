import { isRecord } from "@tenon/core";
import { mergeNodes, type Node } from "./normalise.ts";

const MAX_VARIANTS = 20;
const MAX_SENTENCE = 600;

/** A schema read as "an object with these properties". */
interface Form {
  readonly properties: ReadonlyMap<string, Node>;
  readonly required: ReadonlySet<string>;
  /** What only words can say of it. */
  readonly sentences: readonly string[];
}

const branches = (value: unknown): Node[] => (Array.isArray(value) ? value.filter(isRecord) : []);

function fixedValues(node: Node): readonly unknown[] | undefined {
  if (node.const !== undefined) return [node.const];
  return Array.isArray(node.enum) ? node.enum : undefined;
}

/** One property that has another form in each branch. */
function either(variants: readonly Node[]): Node {
  const distinct = [...new Map(variants.map((node) => [JSON.stringify(node), node])).values()];
  const [only] = distinct;
  if (only === undefined || distinct.some((node) => Object.keys(node).length === 0)) return {};
  if (distinct.length === 1) return only;
  const fixed = distinct.map(fixedValues);
  if (fixed.every((list) => list !== undefined)) {
    const all = [...new Map(fixed.flat().map((value) => [JSON.stringify(value), value])).values()];
    const { const: _const, ...rest } = Object.assign({}, ...[...distinct].reverse()) as Node; // the first one's words win
    if (distinct.some((node) => JSON.stringify(node.type) !== JSON.stringify(only.type))) delete rest.type;
    return { ...rest, enum: all };
  }
  return distinct.length > MAX_VARIANTS ? {} : { anyOf: distinct };
}

function label(form: Form, base: ReadonlySet<string>): string {
  const names = [...form.required].filter((name) => !base.has(name));
  const fixed = [...form.properties].flatMap(([name, node]) =>
    node.const === undefined ? [] : [`${name} = ${JSON.stringify(node.const)}`],
  );
  const shown = names.filter((name) => !fixed.some((item) => item.startsWith(`${name} = `)));
  const parts = [...fixed, ...shown];
  return parts.length > 0 ? `(${parts.join(", ")})` : `(${[...form.properties.keys()].join(", ") || "nothing more"})`;
}

function choice(word: "anyOf" | "oneOf", forms: readonly Form[], base: ReadonlySet<string>): string {
  const which = word === "oneOf" ? "Exactly one" : "At least one";
  const text = `${which} of these must be given: ${forms.map((form) => label(form, base)).join(" or ")}.`;
  return text.length > MAX_SENTENCE ? `${text.slice(0, MAX_SENTENCE)}…` : text;
}

function formOf(node: Node): Form {
  const properties = new Map<string, Node>();
  const required = new Set<string>();
  const sentences: string[] = [];
  const add = (name: string, more: Node) => properties.set(name, mergeNodes(properties.get(name) ?? {}, more));
  const own = isRecord(node.properties) ? node.properties : {};
  for (const [name, value] of Object.entries(own)) add(name, isRecord(value) ? value : {});
  for (const name of Array.isArray(node.required) ? node.required : []) required.add(name);
  for (const form of branches(node.allOf).map(formOf)) {
    for (const [name, value] of form.properties) add(name, value);
    for (const name of form.required) required.add(name);
    sentences.push(...form.sentences);
  }
  for (const word of ["anyOf", "oneOf"] as const) {
    const forms = branches(node[word]).map(formOf);
    if (forms.length === 0) continue;
    const names = new Set(forms.flatMap((form) => [...form.properties.keys()]));
    for (const name of names)
      add(
        name,
        either(forms.flatMap((form): Node[] => (form.properties.has(name) ? [form.properties.get(name) ?? {}] : []))),
      );
    if (forms.length > 1) sentences.push(choice(word, forms, new Set(required)), ...forms.flatMap((f) => f.sentences));
    const [first] = forms;
    const shared = [...(first?.required ?? [])].filter((name) => forms.every((form) => form.required.has(name)));
    for (const form of forms) for (const name of form.required) if (!properties.has(name)) properties.set(name, {});
    for (const name of shared) required.add(name);
  }
  const conditional = [
    node.then,
    node.else,
    ...Object.values(isRecord(node.dependentSchemas) ? node.dependentSchemas : {}),
  ];
  for (const form of branches(conditional).map(formOf)) {
    for (const [name, value] of form.properties) if (!properties.has(name)) properties.set(name, value);
  }
  for (const [name, others] of Object.entries(isRecord(node.dependentRequired) ? node.dependentRequired : {})) {
    if (Array.isArray(others) && others.length > 0) sentences.push(`${name} needs ${others.join(", ")}.`);
  }
  for (const name of required) if (!properties.has(name) && name !== "__proto__") properties.set(name, {});
  required.delete("__proto__");
  return { properties, required, sentences };
}

/** Words a root keeps besides its properties. */
const KEPT = ["title", "additionalProperties", "patternProperties", "minProperties", "maxProperties"];

/**
 * A schema as one object with properties, without `anyOf`, `oneOf`, `allOf`, `not`, `enum` and conditions around them:
 * properties of all branches, required where every branch requires them, and a sentence that says what else holds.
 */
export function flatten(node: Node): Node & { properties: Record<string, Node> } {
  const { properties, required, sentences } = formOf(node);
  const words = [node.description, ...sentences.slice(0, 8)].filter((text) => typeof text === "string" && text !== "");
  const flat: Node & { properties: Record<string, Node> } = {
    type: "object",
    properties: Object.fromEntries(properties),
  };
  if (words.length > 0) flat.description = words.join(" ");
  if (required.size > 0) flat.required = [...required];
  for (const key of KEPT) if (node[key] !== undefined) flat[key] = node[key];
  return flat;
}
