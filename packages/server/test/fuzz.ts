/**
 * How a property is tried: `runs` times in a test run, `TENON_FUZZ_RUNS` times where that is set, from the seed
 * `TENON_FUZZ_SEED` where that is set. A failure names its seed; with it the same cases come again.
 * @example fc.assert(property, fuzz(150))
 */
export function fuzz(runs: number): { numRuns: number; seed?: number } {
  const { TENON_FUZZ_RUNS: given, TENON_FUZZ_SEED: seed } = process.env;
  return { numRuns: Number(given ?? runs), ...(seed !== undefined && { seed: Number(seed) }) };
}
