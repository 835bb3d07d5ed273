import { ContractError } from "../errors.ts";
import { isRecord, type JsonObject } from "../json.ts";
import { schemaCheck } from "../json-schema/check.ts";
import { describeFault } from "../json-schema/survey.ts";
import { kindOf } from "../options.ts";
import { valueAt, wrongFields } from "../schema.ts";

/** Bytes of a context: every request carries it. */
export const MAX_CONTEXT_BYTES = 16_384;

/** What is wrong with a context, as the wire says it in an error's `data`. */
export interface ContextFault {
  readonly reason: "missing_context_field" | "invalid_context_value";
  /** The path of the field, such as `user_id` or `order.id`. */
  readonly field: string;
  /** In a sentence; never the value. */
  readonly problem: string;
}

const isMissing = (value: unknown): boolean => value === undefined || value === null || value === "";

function missingField(schema: JsonObject, context: Readonly<Record<string, unknown>>): string | undefined {
  const { required } = schema;
  if (!Array.isArray(required)) return undefined;
  for (const name of required) {
    if (typeof name === "string" && (!Object.hasOwn(context, name) || isMissing(context[name]))) return name;
  }
  return undefined;
}

/** An object that is nothing but its fields, of this realm or another. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * The first field that JSON cannot carry, where a schema's check would let it through or a wire would change it; or that all of it
 * together is too large. A large or endless value costs no more than a small one.
 */
function unfitField(context: Readonly<Record<string, unknown>>): Pick<ContextFault, "field" | "problem"> | undefined {
  let left = MAX_CONTEXT_BYTES;
  for (const field in context) {
    left -= Buffer.byteLength(field) + 4;
    const open: unknown[] = [context[field]];
    while (open.length > 0 && left >= 0) {
      const value = open.pop();
      if (typeof value === "string") left -= Buffer.byteLength(value) + 2;
      else if (Array.isArray(value)) {
        left -= value.length + 2;
        if (left >= 0) for (const item of value) open.push(item);
      } else if (typeof value === "object" && value !== null && isPlain(value)) {
        for (const [key, item] of Object.entries(value)) {
          left -= Buffer.byteLength(key) + 4;
          open.push(item);
        }
        left -= 2;
      } else if (value === undefined || value === null || typeof value === "boolean" || Number.isFinite(value))
        left -= 4;
      else return { field, problem: `${field}: ${kindOf(value)} that JSON cannot carry` };
    }
    if (left < 0) return { field: "context", problem: `the context has more than ${MAX_CONTEXT_BYTES} bytes` };
  }
  return undefined;
}

/**
 * What is wrong with a context by its contract's schema: required means present and not empty, and values are what the schema
 * says, without conversion. Undefined when all is well.
 */
export function contextFault(schema: JsonObject, context: unknown): ContextFault | undefined {
  if (context !== undefined && !isRecord(context)) {
    return { reason: "invalid_context_value", field: "context", problem: "the context must be an object" };
  }
  const given: Readonly<Record<string, unknown>> = context ?? {};
  const missing = missingField(schema, given);
  if (missing !== undefined) {
    const problem =
      context === undefined ? `no context was sent along, and ${missing} is required` : `the context has no ${missing}`;
    return { reason: "missing_context_field", field: missing, problem };
  }
  const unfit = unfitField(given);
  if (unfit) return { reason: "invalid_context_value", ...unfit };
  const compiled = schemaCheck(schema, "first");
  if (compiled.fault) {
    const problem = `the contract's schema cannot be used: ${describeFault(compiled.fault)}`;
    return { reason: "invalid_context_value", field: "context", problem };
  }
  const verdict = compiled.check(given);
  if (verdict.ok === true) return undefined;
  if (verdict.ok === "stopped") {
    return { reason: "invalid_context_value", field: "context", problem: `it could not be checked: ${verdict.reason}` };
  }
  const [first] = wrongFields(verdict.issues, given, { whole: "context", shown: undefined });
  const [issue] = verdict.issues;
  return {
    // one that is required further inside
    reason: issue && !valueAt(given, issue.path).there ? "missing_context_field" : "invalid_context_value",
    field: first?.path || "context",
    problem: first?.message ?? "the context does not fit its schema",
  };
}

/** The error for a fault. */
export function contextError({ reason, field, problem }: ContextFault, server?: string): ContractError {
  return new ContractError(
    `The contract${server === undefined ? "" : ` of server "${server}"`} is not met: ${problem}`,
    {
      code: reason,
      maybeExecuted: false,
      ...(server !== undefined && { server }),
      data: { reason, field },
    },
  );
}

function typesOf(schema: unknown): ReadonlySet<string> | undefined {
  const { type } = isRecord(schema) ? schema : {};
  if (typeof type === "string") return new Set([type]);
  return Array.isArray(type) ? new Set(type.map(String)) : undefined;
}

/** Fields that two schemas declare with types that no value can have both of; what only one declares is no conflict. */
export function schemaConflicts(server: JsonObject, client: JsonObject): string[] {
  const theirs = isRecord(server.properties) ? server.properties : {};
  const ours = isRecord(client.properties) ? client.properties : {};
  return Object.keys(ours).filter((name) => {
    const wanted = Object.hasOwn(theirs, name) ? typesOf(theirs[name]) : undefined;
    const given = typesOf(ours[name]);
    if (!wanted || !given) return false;
    const fitting = [...given].some((type) => wanted.has(type) || (type === "integer" && wanted.has("number")));
    return !fitting;
  });
}
