import { ConfigError } from "./errors.ts";

/** Number of single-character edits between two words, counting a swap of neighbours as one (optimal string alignment). */
function editDistance(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...new Array<number>(b.length).fill(0)]);
  const at = (i: number, j: number): number => rows[i]?.[j] ?? (i < 0 || j < 0 ? Number.POSITIVE_INFINITY : j);
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, at(i - 2, j - 2) + 1);
      (rows[i] as number[])[j] = cost; // rows has a.length + 1 entries, so rows[i] exists
    }
  }
  return at(a.length, b.length);
}

/** The known word closest to `given`, or undefined when none is close enough to be a typing error. */
export function didYouMean(given: string, known: readonly string[]): string | undefined {
  const limit = Math.max(1, Math.floor(given.length / 3));
  let best: { word: string; distance: number } | undefined;
  for (const word of known) {
    const distance = editDistance(given.toLowerCase(), word.toLowerCase());
    if (distance <= limit && (best === undefined || distance < best.distance)) best = { word, distance };
  }
  return best?.word;
}

/**
 * Refuses option objects with keys nobody reads, since a silent typing error costs days.
 * @param where how the object is called in the message, for example `"createServer(options)"`
 * @throws ConfigError `code: "unknown_option"` naming the key and the nearest known one
 */
export function checkOptions(given: object, known: readonly string[], where: string): void {
  for (const key of Object.keys(given)) {
    if (known.includes(key)) continue;
    const near = didYouMean(key, known);
    const hint = near ? `did you mean "${near}"?` : `known options: ${known.join(", ")}`;
    throw new ConfigError(`${where} has no option "${key}"; ${hint}`, { code: "unknown_option", data: { key, near } });
  }
}
