import { isDeepStrictEqual } from "node:util";
import type { MatchCondition } from "@langchain/langgraph";
import { ConfigError, isRecord } from "@tenon/core";
import { didYouMean } from "@tenon/core/internal";

const RESERVED = /[.:\0]/;

/**
 * The rules of LangGraph's namespaces: at least one label, none empty, none with a character that joins labels somewhere.
 * @throws ConfigError `code: "namespace"`
 */
export function checkNamespace(namespace: readonly unknown[]): void {
  const wrong = namespace.find((label) => typeof label !== "string" || label === "" || RESERVED.test(label));
  if (namespace.length > 0 && wrong === undefined) return;
  const given = namespace.length === 0 ? "none" : JSON.stringify(namespace);
  throw new ConfigError(
    `A namespace is a list of at least one label, texts without ".", ":" and NUL that are not empty; given ${given}`,
    { code: "namespace" },
  );
}

/** Whether a namespace begins or ends as asked; "*" stands for any one label. */
export function matches({ matchType, path }: MatchCondition, namespace: readonly string[]): boolean {
  if (path.length > namespace.length) return false;
  const from = matchType === "prefix" ? 0 : namespace.length - path.length;
  return path.every((label, i) => label === "*" || label === namespace[from + i]);
}

/** Objects hold what is asked of them, and may hold more, as in PostgresStore; everything else is equal or not. */
function holds(actual: unknown, wanted: unknown): boolean {
  if (!isRecord(wanted) || !isRecord(actual)) return isDeepStrictEqual(actual, wanted);
  return Object.entries(wanted).every(([key, value]) => key in actual && holds(actual[key], value));
}

const isOneOf = (value: unknown, list: unknown): boolean => {
  if (!Array.isArray(list)) throw new ConfigError("$in and $nin take a list of values", { code: "filter" });
  return list.some((one) => isDeepStrictEqual(one, value));
};

const OPERATORS: Readonly<Record<string, (actual: unknown, given: unknown) => boolean>> = {
  $eq: (actual, given) => isDeepStrictEqual(actual, given),
  $ne: (actual, given) => !isDeepStrictEqual(actual, given),
  $gt: (actual, given) => Number(actual) > Number(given),
  $gte: (actual, given) => Number(actual) >= Number(given),
  $lt: (actual, given) => Number(actual) < Number(given),
  $lte: (actual, given) => Number(actual) <= Number(given),
  $in: isOneOf,
  $nin: (actual, given) => !isOneOf(actual, given),
};

/**
 * A filter as a question about an item's value: all its fields must fit. A field is a value to be equal to, or operators.
 * @throws ConfigError `code: "filter"` for an operator nobody knows
 */
export function filterOf(filter: Readonly<Record<string, unknown>> = {}): (value: Record<string, unknown>) => boolean {
  const tests = Object.entries(filter).flatMap(([field, wanted]) => {
    if (!isRecord(wanted) || !Object.keys(wanted).some((key) => key.startsWith("$"))) {
      return [(value: Record<string, unknown>) => holds(value[field], wanted)];
    }
    return Object.entries(wanted).map(([name, given]) => {
      const operator = Object.hasOwn(OPERATORS, name) ? OPERATORS[name] : undefined;
      if (operator) return (value: Record<string, unknown>) => operator(value[field], given);
      const known = Object.keys(OPERATORS);
      const near = didYouMean(name, known);
      throw new ConfigError(
        `The filter on "${field}" has no operator "${name}"; ${near ? `did you mean "${near}"?` : `known: ${known.join(", ")}`}`,
        { code: "filter" },
      );
    });
  });
  return (value) => tests.every((test) => test(value));
}
