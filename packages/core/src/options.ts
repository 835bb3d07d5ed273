import { createRequire } from "node:module";
import type { distance } from "fastest-levenshtein";
import { ConfigError } from "./errors.ts";
import { isRecord } from "./json.ts";

const require = createRequire(import.meta.url);

/** Loaded for the first message that needs it: a program without typing errors starts without it. */
function editDistance(): typeof distance {
  return require("fastest-levenshtein").distance;
}

/**
 * The known word closest to `given`, or undefined when none is close enough to be a typing error.
 * @param given what a program wrote, which need not be a text although its types say so
 */
export function didYouMean(given: string, known: readonly string[]): string | undefined {
  if (typeof given !== "string") return undefined;
  const limit = Math.max(1, Math.floor(given.length / 3));
  const editsBetween = editDistance();
  let best: { word: string; edits: number } | undefined;
  for (const word of known) {
    const edits = editsBetween(given.toLowerCase(), word.toLowerCase());
    if (edits <= limit && (best === undefined || edits < best.edits)) best = { word, edits };
  }
  return best?.word;
}

/** What something is, for a message that must not show it since it may be secret: `"nothing"`, `"a list"`, `"a value of type string"`. */
export function kindOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `a value of type ${typeof value}`;
}

/**
 * Refuses what is no object of options, and keys nobody reads, since a silent typing error costs days.
 * @param where how the object is called in the message, for example `"createServer(options)"`
 * @throws ConfigError `invalid_option` for anything but an object, `unknown_option` naming the key and the nearest known one
 */
export function checkOptions(given: object, known: readonly string[], where: string): void {
  if (!isRecord(given)) {
    throw new ConfigError(
      `${where} must be an object, got ${kindOf(given)}; its options: ${known.join(", ") || "none"}`,
      { code: "invalid_option" },
    );
  }
  for (const key of Object.keys(given)) {
    if (known.includes(key)) continue;
    const near = didYouMean(key, known);
    const hint = near ? `did you mean "${near}"?` : `known options: ${known.join(", ")}`;
    throw new ConfigError(`${where} has no option "${key}"; ${hint}`, { code: "unknown_option", data: { key, near } });
  }
}
