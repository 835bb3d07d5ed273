import { isRecord } from "@tenon/core";
import { flatten } from "./flatten.ts";
import { mergeNodes, type Node } from "./normalise.ts";

const MAX_WORK = 4_000;
const FORMATS: Readonly<Record<string, readonly string[]>> = {
  string: ["date-time"],
  number: ["float", "double"],
  integer: ["int32", "int64"],
};

interface Work {
  left: number;
}

const words = (node: Node, more?: string): Node => {
  const description = [node.description, more].filter((text) => typeof text === "string" && text !== "").join(" ");
  return description === "" ? {} : { description };
};

function typeOfValue(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value; // JSON has no others
}

/** The types a schema allows, said or implied; empty when it says nothing. */
function typesOf(node: Node): string[] {
  if (typeof node.type === "string") return [node.type];
  if (Array.isArray(node.type)) return node.type;
  const fixed = fixedValues(node);
  if (fixed) return [...new Set(fixed.map(typeOfValue))];
  if (node.properties !== undefined || node.required !== undefined) return ["object"];
  if (node.items !== undefined || node.prefixItems !== undefined) return ["array"];
  if (node.pattern !== undefined || node.minLength !== undefined || node.maxLength !== undefined) return ["string"];
  if (node.minimum !== undefined || node.maximum !== undefined || node.multipleOf !== undefined) return ["number"];
  return [];
}

function fixedValues(node: Node): readonly unknown[] | undefined {
  if (node.const !== undefined) return [node.const];
  return Array.isArray(node.enum) ? node.enum : undefined;
}

/** Values one by one, as text: Gemini's enums hold nothing else. They are turned back before a call is sent. */
function enumNode(node: Node, fixed: readonly unknown[]): Node {
  const texts = fixed.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  const usable = [...new Set(texts)].filter((value) => value !== ""); // empty ones are refused
  return { type: "string", ...words(node), ...(usable.length > 0 && { enum: usable }) };
}

function objectNode(node: Node, work: Work): Node {
  const flat = flatten(node);
  const properties = Object.entries(flat.properties).map(([name, value]) => [name, convert(value, work)] as const);
  // an object without properties is refused
  if (properties.length === 0) return { type: "string", ...words(flat, "A JSON object, written as text.") };
  const names = properties.map(([name]) => name);
  const required = Array.isArray(flat.required) ? flat.required.filter((name) => names.includes(name)) : [];
  return {
    type: "object",
    ...words(flat),
    properties: Object.fromEntries(properties),
    ...(required.length > 0 && { required }),
  };
}

function arrayNode(node: Node, work: Work): Node {
  const places = Array.isArray(node.prefixItems) ? node.prefixItems.filter(isRecord) : [];
  const items = places.length > 0 ? { anyOf: places } : isRecord(node.items) ? node.items : {};
  const bounds = Object.entries({ minItems: node.minItems, maxItems: node.maxItems }).filter(
    ([, value]) => value !== undefined,
  );
  return { type: "array", ...words(node), items: convert(items, work), ...Object.fromEntries(bounds) };
}

function typed(node: Node, type: string, work: Work): Node {
  if (type === "object") return objectNode(node, work);
  if (type === "array") return arrayNode(node, work);
  const { format } = node;
  const kept = typeof format === "string" && FORMATS[type]?.includes(format) ? { format } : {};
  const bounds = type === "string" || type === "boolean" ? {} : { minimum: node.minimum, maximum: node.maximum };
  const given = Object.entries(bounds).filter(([, value]) => value !== undefined);
  return { type, ...words(node), ...kept, ...Object.fromEntries(given) };
}

/** Several possibilities: `anyOf` stands alone in Gemini's schemas, so words and `nullable` go into each. */
function oneOfSeveral(variants: readonly Node[], nullable: boolean): Node {
  const flat = variants.flatMap((node) => (Array.isArray(node.anyOf) ? (node.anyOf as Node[]) : [node])); // made below
  const marked = flat.map((node) => (nullable ? { ...node, nullable: true } : node));
  const distinct = [...new Map(marked.map((node) => [JSON.stringify(node), node])).values()];
  const [only] = distinct;
  return distinct.length === 1 && only ? only : { anyOf: distinct.slice(0, 20) };
}

function convert(given: Node, work: Work): Node {
  work.left -= 1;
  if (work.left < 0) return { type: "string" };
  const all = Array.isArray(given.allOf) ? given.allOf.filter(isRecord) : [];
  const { allOf: _all, ...own } = given;
  const { anyOf, oneOf, ...base } = all.reduce<Node>(mergeNodes, own);
  const choices = [anyOf, oneOf].find((list): list is Node[] => Array.isArray(list) && list.length > 0);
  if (choices && !typesOf(base).includes("object")) {
    const real = choices.filter(
      (choice) => !typesOf(choice).every((type) => type === "null") || typesOf(choice).length === 0,
    );
    const variants = real.map((choice) => convert(mergeNodes(base, choice), work));
    if (variants.length > 0) return oneOfSeveral(variants, real.length < choices.length);
  }
  const node: Node = choices ? { ...base, anyOf: choices } : base;
  const types = typesOf(node);
  const nullable = types.includes("null");
  const real = types.filter((type) => type !== "null" && !(type === "integer" && types.includes("number")));
  const fixed = fixedValues(node)?.filter((value) => value !== null);
  if (fixed && fixed.length > 0) {
    const isNull = nullable && fixedValues(node)?.includes(null);
    return { ...enumNode(node, fixed), ...(isNull && { nullable: true }) };
  }
  if (types.length > 0 && real.length === 0) return { type: "string", ...words(node, "Always null."), nullable: true };
  const possible = real.length > 0 ? real : ["string", "number", "boolean"];
  return oneOfSeveral(
    possible.map((type) => typed(node, type, work)),
    nullable,
  );
}

/** A normalised schema in the words that Gemini's classic `parameters` take. Never throws. */
export function toGemini(node: Node): Node {
  const work: Work = { left: MAX_WORK };
  const flat = flatten(node);
  const properties = Object.entries(flat.properties).map(([name, value]) => [name, convert(value, work)] as const);
  return {
    type: "object",
    ...words(flat),
    properties: Object.fromEntries(properties),
    ...(flat.required !== undefined && { required: flat.required }),
  };
}
