import type { Reporter, SerializedError, TestModule } from "vitest/node";

/** Prints `N passed, N failed, N skipped` alone on the last line, for scripts. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const count = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      for (const test of tests) {
        const { state } = test.result();
        count[state === "pending" ? "failed" : state] += 1;
      }
      // a file that does not load has no tests: it must not look like success
      if (tests.length === 0 && !module.ok()) count.failed += 1;
    }
    process.once("exit", () => {
      process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
    });
  }
}
