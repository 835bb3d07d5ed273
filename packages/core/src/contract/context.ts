import { ContractError } from "../errors.ts";
import { isRecord, type JsonObject, jsonSize } from "../json.ts";
import { schemaCheck } from "../json-schema/check.ts";
import { describeFault } from "../json-schema/survey.ts";
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
    return { reason: "missing_context_field", field: missing, problem: `the context has no ${missing}` };
  }
  if (jsonSize(given, MAX_CONTEXT_BYTES) > MAX_CONTEXT_BYTES) {
    const problem = `the context has more than ${MAX_CONTEXT_BYTES} bytes`;
    return { reason: "invalid_context_value", field: "context", problem };
  }
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
