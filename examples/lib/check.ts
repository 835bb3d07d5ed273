import { isDeepStrictEqual } from "node:util";

let failed = 0;

/** States what an example shows; a wrong value makes the example exit with 1. */
export function check(what: string, actual: unknown, expected: unknown): void {
  const ok = expected instanceof RegExp ? expected.test(String(actual)) : isDeepStrictEqual(actual, expected);
  if (!ok) failed += 1;
  console.log(`${ok ? "✓" : "✗"} ${what}`);
  if (!ok)
    console.log(
      `    got      ${JSON.stringify(actual)}\n    expected ${expected instanceof RegExp ? expected : JSON.stringify(expected)}`,
    );
}

process.on("exit", (code) => {
  if (code === 0 && failed > 0) process.exitCode = 1;
});
