import { readFileSync } from "node:fs";

/** A failure that is expected, and why. */
export interface Known {
  readonly line: number;
  readonly reason: string;
}

/**
 * Known failures by `revision scenario`. A line is `revision scenario: reason`; the reason is not optional.
 * @throws Error naming a line without one
 */
export function readBaseline(file: string): ReadonlyMap<string, Known> {
  const known = new Map<string, Known>();
  for (const [index, text] of readFileSync(file, "utf8").split("\n").entries()) {
    if (text.trim() === "" || text.startsWith("#")) continue;
    const found = /^(\S+ \S+): (\S.*)$/.exec(text);
    if (!found?.[1] || !found[2]) throw new Error(`${file}:${index + 1} is not "revision scenario: reason": ${text}`);
    known.set(found[1], { line: index + 1, reason: found[2] });
  }
  return known;
}
