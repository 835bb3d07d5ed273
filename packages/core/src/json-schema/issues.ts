import type { ErrorObject } from "ajv";
import { isRecord, type Json, type JsonObject } from "../json.ts";
import { didYouMean } from "../options.ts";
import type { SchemaIssue } from "../schema.ts";
import { resolvePointer, subschemas } from "./document.ts";

/** Errors that are looked at. */
const MAX_ERRORS = 1_000;
/** One issue per wrong field is plenty; a list of ten thousand wrong items must not become ten thousand objects. */
const MAX_ISSUES = 50;
/** Alternatives that are told apart; of more, everything that is wrong is said. */
const MAX_ALTERNATIVES = 200;
/** Schemas of one alternative that are looked at. */
const MAX_REACH = 500;
/** Characters of the values that an enum allows, in a message. */
const MAX_LIST = 1_000;

/** Keywords that are about one property, and the parameter that names it: the issue is that property's. */
const NAMING: ReadonlyMap<string, string> = new Map([
  ["required", "missingProperty"],
  ["additionalProperties", "additionalProperty"],
  ["unevaluatedProperties", "unevaluatedProperty"],
]);

function pathOf(error: ErrorObject): PropertyKey[] {
  const parts = error.instancePath.split("/").slice(1);
  const path: PropertyKey[] = parts.map((part) => {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    return /^\d+$/.test(key) ? Number(key) : key;
  });
  const { params, keyword, propertyName } = error;
  const named = NAMING.get(keyword);
  const name: unknown = propertyName ?? (named && params[named]);
  if (typeof name === "string") path.push(name);
  return path;
}

/** The values of an enum; of a long one the first, so that whoever reads the message can still read it. */
function oneOf(values: readonly unknown[]): string {
  const shown: string[] = [];
  let length = 0;
  for (const value of values) {
    const text = JSON.stringify(value) ?? "undefined";
    if (shown.length > 0 && length + text.length > MAX_LIST) break;
    shown.push(text.length > MAX_LIST ? `${text.slice(0, MAX_LIST)}…` : text);
    length += text.length + 2;
  }
  const left = values.length - shown.length;
  return shown.join(", ") + (left > 0 ? ` and ${left} more` : "");
}

/** `a string`, `an integer`, `null`. */
function typeInWords(type: unknown): string {
  const name = String(type);
  if (name === "null") return name;
  return /^[aio]/.test(name) ? `an ${name}` : `a ${name}`;
}

/** An unknown property, with the known one that was meant: near in spelling, and not given itself. */
function unknownProperty(name: unknown, { parentSchema, data }: ErrorObject): string {
  const properties = isRecord(parentSchema?.properties) ? Object.keys(parentSchema.properties) : [];
  const known = properties.filter((other) => !isRecord(data) || !Object.hasOwn(data, other));
  const near = typeof name === "string" ? didYouMean(name.slice(0, 100), known.slice(0, 1_000)) : undefined;
  return near ? `unknown property; did you mean "${near}"?` : "unknown property";
}

function messageOf(error: ErrorObject): string {
  const { keyword, params, message, propertyName } = error;
  if (propertyName !== undefined)
    return `unknown property; its name ${messageOf({ ...error, propertyName: undefined })}`;
  switch (keyword) {
    case "required":
      return "required, but missing";
    case "additionalProperties":
      return unknownProperty(params.additionalProperty, error);
    case "unevaluatedProperties":
      return unknownProperty(params.unevaluatedProperty, error);
    case "type":
      return `must be ${[params.type].flat().map(typeInWords).join(" or ")}`;
    case "enum":
      return `must be one of ${oneOf(Array.isArray(params.allowedValues) ? params.allowedValues : [])}`;
    case "const":
      return `must be ${JSON.stringify(params.allowedValue)}`;
    case "oneOf":
      return Array.isArray(params.passingSchemas)
        ? "fits several of the alternatives, but must fit exactly one"
        : "fits none of the alternatives";
    case "anyOf":
      return "fits none of the alternatives";
    case "not":
      return "is a value that is ruled out";
    case "false schema":
      return "is not allowed here";
    default:
      return message ?? `breaks "${keyword}"`;
  }
}

function typeFits(type: unknown, value: unknown): boolean {
  const is: Record<string, boolean> = {
    null: value === null,
    array: Array.isArray(value),
    object: isRecord(value),
    string: typeof value === "string",
    boolean: typeof value === "boolean",
    number: typeof value === "number",
    integer: Number.isInteger(value),
  };
  return type === undefined || [type].flat().some((name) => typeof name === "string" && is[name] === true);
}

/** The values a property may have in one alternative, where the alternative names them. */
function namedValues(branch: JsonObject | undefined, key: string): readonly unknown[] | undefined {
  const properties = branch?.properties;
  const property = isRecord(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined;
  if (!isRecord(property)) return undefined;
  if ("const" in property) return [property.const];
  return Array.isArray(property.enum) ? property.enum : undefined;
}

interface Branch {
  readonly schema: JsonObject | undefined;
  readonly errors: readonly ErrorObject[];
}

/**
 * What a failed `anyOf` or `oneOf` comes down to: the errors of the alternatives that were meant (by type, or by a property
 * whose named values tell the alternatives apart), or one issue that says what would do.
 */
function narrowed(
  error: ErrorObject,
  branches: readonly Branch[],
): { errors: readonly ErrorObject[] } | { issue: SchemaIssue } | undefined {
  const { data } = error;
  const typed = branches.filter(({ schema }) => typeFits(schema?.type, data));
  const meant = typed.length > 0 ? typed : branches;
  if (isRecord(data)) {
    const keys = Object.keys(isRecord(meant[0]?.schema?.properties) ? meant[0].schema.properties : {});
    const tag = keys.find((key) => meant.every(({ schema }) => namedValues(schema, key) !== undefined));
    if (tag !== undefined && meant.length > 1) {
      const chosen = meant.filter(({ schema }) => namedValues(schema, tag)?.includes(data[tag]));
      if (chosen.length > 0) return { errors: chosen.flatMap((branch) => branch.errors) };
      const values = [...new Set(meant.flatMap(({ schema }) => namedValues(schema, tag) ?? []))];
      const missing = Object.hasOwn(data, tag) ? "" : "required, but missing; ";
      return { issue: { path: [...pathOf(error), tag], message: `${missing}must be one of ${oneOf(values)}` } };
    }
    const needs = meant.map((branch) =>
      branch.errors.map((inner) =>
        inner.keyword === "required" && inner.instancePath === error.instancePath
          ? String(inner.params.missingProperty)
          : undefined,
      ),
    );
    if (needs.length > 1 && needs.every((names) => names.length > 0 && !names.includes(undefined))) {
      const ways = needs.map((names) => names.map((name) => JSON.stringify(name)).join(" and "));
      return { issue: { path: pathOf(error), message: `needs ${ways.join(" or ")}` } };
    }
  }
  return meant.length < branches.length ? { errors: meant.flatMap((branch) => branch.errors) } : undefined;
}

/** The schemas a value is checked against at one of them: those inside it, and what they refer to. */
function reach(root: JsonObject, start: Json | undefined): ReadonlySet<unknown> {
  const found = new Set<unknown>();
  const open = [start];
  while (open.length > 0 && found.size < MAX_REACH) {
    const node = open.pop();
    if (!isRecord(node) || found.has(node)) continue;
    found.add(node);
    open.push(resolvePointer(root, node.$ref), ...subschemas(node).map(([, child]) => child));
  }
  return found;
}

const WRAPPING = new Set(["anyOf", "oneOf", "if", "not", "propertyNames"]);

function fitsSeveral({ params }: ErrorObject): boolean {
  return Array.isArray(params.passingSchemas);
}

function isChoice(error: ErrorObject): boolean {
  return (error.keyword === "anyOf" || error.keyword === "oneOf") && !fitsSeveral(error);
}

/**
 * Ajv's errors as issues, one per place, with what was expected there. Ajv repeats a failed `anyOf` as the errors of all its
 * alternatives; here only those of the alternatives that were meant remain, where that can be told.
 * @param all in Ajv's order, with its options `allErrors` and, for the choice between alternatives, `verbose`
 * @param root the document, to follow references in alternatives
 */
export function ajvIssues(all: readonly ErrorObject[], root: JsonObject): SchemaIssue[] {
  const errors = all.slice(0, MAX_ERRORS);
  const dropped = new Set<ErrorObject>();
  const issues: SchemaIssue[] = [];
  // the innermost alternatives come first in Ajv's list
  for (const error of errors) {
    const alternatives = isChoice(error) && !dropped.has(error) ? error.schema : undefined;
    if (!Array.isArray(alternatives) || alternatives.length > MAX_ALTERNATIVES) continue;
    const within = errors.filter((inner) => inner !== error && inner.instancePath.startsWith(error.instancePath));
    const branches = alternatives.map((schema: Json, i): Branch => {
      const reference = isRecord(schema) && typeof schema.$ref === "string" ? schema.$ref : undefined;
      const target = reference === undefined ? schema : resolvePointer(root, reference);
      const reached = reference === undefined ? undefined : reach(root, target);
      const own = within.filter((inner) => {
        if (dropped.has(inner)) return false;
        return inner.schemaPath.startsWith(`${error.schemaPath}/${i}/`) || reached?.has(inner.parentSchema);
      });
      return { schema: isRecord(target) ? target : undefined, errors: own };
    });
    const outcome = narrowed(error, branches);
    if (!outcome) continue;
    const kept = new Set("errors" in outcome ? outcome.errors : []);
    if ("errors" in outcome && kept.size === 0) continue;
    for (const branch of branches) for (const inner of branch.errors) if (!kept.has(inner)) dropped.add(inner);
    if ("issue" in outcome) {
      dropped.add(error);
      issues.push(outcome.issue);
    }
  }
  const left = errors.filter((error) => !dropped.has(error));
  const telling = left.filter((error) => !WRAPPING.has(error.keyword) || fitsSeveral(error));
  const chosen = telling.length > 0 || issues.length > 0 ? telling : left;
  const choices = left.filter(isChoice);
  const seen = new Map<string, SchemaIssue>(issues.map((issue) => [JSON.stringify(issue.path), issue]));
  for (const error of chosen) {
    if (seen.size >= MAX_ISSUES) break;
    const issue = { message: messageOf(error), path: pathOf(error) };
    const place = JSON.stringify(issue.path);
    const other = seen.get(place);
    if (!other) seen.set(place, issue);
    else if (!other.message.includes(issue.message)) {
      const either = choices.some((choice) => error.instancePath.startsWith(choice.instancePath));
      const more = either ? ` or ${issue.message.replace(/^must be /, "")}` : ` and ${issue.message}`;
      if (other.message.length < MAX_LIST) seen.set(place, { ...other, message: other.message + more });
    }
  }
  return [...seen.values()];
}
