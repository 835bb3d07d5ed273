import { createRequire } from "node:module";
import type { distance } from "fastest-levenshtein";
import { ConfigError } from "./errors.ts";
import { isRecord } from "./json.ts";

const require = createRequire(import.meta.url);

/** Loaded for the first message that needs it: a program without typing errors starts without it. */
function editDistance(): typeof distance {
  return require("fastest-levenshtein").distance;
}

/** Whether two texts differ in nothing but two letters that stand side by side and changed places. */
function isSwapped(given: string, word: string): boolean {
  if (given.length !== word.length) return false;
  const at = [...given].findIndex((letter, i) => letter !== word[i]);
  return given === `${word.slice(0, at)}${word[at + 1] ?? ""}${word[at] ?? ""}${word.slice(at + 2)}`;
}

/** Letters from which on the beginning of a word stands for it: `timeout` for `timeoutMs`. */
const MIN_BEGINNING = 4;

/**
 * The known word closest to `given`, or the only one that begins so, or undefined when none is close enough to be a typing error.
 * @param given what a program wrote, which need not be a text although its types say so
 */
export function didYouMean(given: string, known: readonly string[]): string | undefined {
  if (typeof given !== "string") return undefined;
  const limit = Math.max(1, Math.floor(given.length / 3));
  const editsBetween = editDistance();
  let best: { word: string; edits: number } | undefined;
  for (const word of known) {
    const [ours, theirs] = [given.toLowerCase(), word.toLowerCase()];
    const edits = isSwapped(ours, theirs) ? 1 : editsBetween(ours, theirs);
    if (edits <= limit && (best === undefined || edits < best.edits)) best = { word, edits };
  }
  if (best !== undefined || given.length < MIN_BEGINNING) return best?.word;
  const [only, ...others] = known.filter((word) => word.toLowerCase().startsWith(given.toLowerCase()));
  return others.length === 0 ? only : undefined;
}

/** What something is, for a message that must not show it since it may be secret: `"nothing"`, `"a list"`, `"a value of type string"`. */
export function kindOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `a value of type ${typeof value}`;
}

/** Refuses a value of one option. Not asked where the option is left out. @param where the option in words */
export type OptionCheck = (value: unknown, where: string) => void;

/** What every option of an object may be: the table that says which options there are, and that the compiler can hold complete. */
export type OptionChecks<Options> = { readonly [Name in keyof Required<Options>]: OptionCheck };

/**
 * Refuses what is no object of options, and keys nobody reads, since a silent typing error costs days.
 * @param known the options there are; as a table, each value that is given is checked by what stands there
 * @param where how the object is called in the message, for example `"createServer(options)"`
 * @param elsewhere words that people look for here, by how they are written where they belong
 * @throws ConfigError `invalid_option` for anything but an object, `unknown_option` naming the key and the nearest known one,
 *   and what a check of the table throws
 */
export function checkOptions(
  given: object,
  known: readonly string[] | Readonly<Record<string, OptionCheck>>,
  where: string,
  elsewhere: Readonly<Record<string, string>> = {},
): void {
  const checks = Array.isArray(known) ? {} : (known as Readonly<Record<string, OptionCheck>>); // no list, so the table
  const names: readonly string[] = Array.isArray(known) ? known : Object.keys(known);
  if (!isRecord(given)) {
    throw new ConfigError(
      `${where} must be an object, got ${kindOf(given)}; its options: ${names.join(", ") || "none"}`,
      { code: "invalid_option" },
    );
  }
  for (const [key, value] of Object.entries(given)) {
    if (names.includes(key)) {
      if (value !== undefined) checks[key]?.(value, `${where}.${key}`);
      continue;
    }
    const near = Object.hasOwn(elsewhere, key) ? elsewhere[key] : didYouMean(key, names);
    const hint = near ? `did you mean "${near}"?` : `known options: ${names.join(", ")}`;
    throw new ConfigError(`${where} has no option "${key}"; ${hint}`, { code: "unknown_option", data: { key, near } });
  }
}

/** Refuses a value of an option. @throws ConfigError `invalid_option` */
export function refuseOption(message: string): never {
  throw new ConfigError(message, { code: "invalid_option" });
}

/** What was given, for a message; Infinity and NaN have no JSON. */
const shown = (value: unknown): string =>
  typeof value === "number" ? String(value) : (JSON.stringify(value) ?? typeof value);

/** For an option that is one of a few words. */
export function oneOf(...words: readonly string[]): OptionCheck {
  return (value, where) => {
    if (typeof value === "string" && words.includes(value)) return;
    refuseOption(`${where} must be one of ${words.join(", ")}, got ${shown(value)}`);
  };
}

/** Above this, in milliseconds, a timer ends at once instead of late: about 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

/** For an option that is a positive number. @param unit of what, for example `"bytes"` */
export function positive(unit: string): OptionCheck {
  return (value, where) => {
    if (typeof value === "number" && value > 0) return;
    refuseOption(`${where} must be a positive number of ${unit}, got ${shown(value)}`);
  };
}

/** For an option that is a number of something, or none. @param unit of what, for example `"calls"` */
export function zeroOrMore(unit: string): OptionCheck {
  return (value, where) => {
    if (typeof value === "number" && value >= 0) return;
    refuseOption(`${where} must be a number of ${unit}, 0 or more, got ${shown(value)}`);
  };
}

/** For an option that is a time a timer keeps, in milliseconds. */
export const milliseconds: OptionCheck = (value, where) => {
  if (typeof value === "number" && value > 0 && value <= LONGEST_MS) return;
  refuseOption(`${where} must be a positive number of milliseconds, at most ${LONGEST_MS}, got ${shown(value)}`);
};

/** For an option that is a function. */
export const callable: OptionCheck = (value, where) => {
  if (typeof value !== "function") refuseOption(`${where} must be a function, got ${kindOf(value)}`);
};

/** For an option that is a text. The value is not shown: it may be secret. */
export const text: OptionCheck = (value, where) => {
  if (typeof value !== "string") refuseOption(`${where} must be a text, got ${kindOf(value)}`);
};

/** For an option that is true or false. */
export const flag: OptionCheck = (value, where) => {
  if (typeof value !== "boolean") refuseOption(`${where} must be true or false, got ${shown(value)}`);
};

/** For an option that is looked at where it is used. */
export const anything: OptionCheck = () => {};
