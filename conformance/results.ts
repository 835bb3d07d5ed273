import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Known } from "./baseline.ts";

/** One check of the suite. */
export interface Check {
  readonly id: string;
  readonly status: string;
  readonly message: string | undefined;
}

/** What came of one scenario. */
export interface Scenario {
  readonly name: string;
  readonly checks: readonly Check[];
  readonly passed: number;
  readonly failed: number;
}

function readChecks(file: string): Check[] {
  const list: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (!Array.isArray(list)) return [];
  return list
    .map((check: Record<string, unknown>) => ({
      id: String(check.id),
      status: String(check.status),
      message: typeof check.errorMessage === "string" ? check.errorMessage : undefined,
    }))
    .filter((check) => check.status !== "INFO");
}

/**
 * Reads what the suite wrote, one folder a scenario. A scenario that left nothing has no checks: it must not look like
 * success.
 * @param expected every scenario that must have run
 */
export function readOutcomes(directory: string, expected: readonly string[]): Scenario[] {
  const folders = readdirSync(directory);
  return expected.map((name) => {
    const folder = folders.find((entry) => entry.replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, "") === `server-${name}`);
    const file = folder === undefined ? undefined : join(directory, folder, "checks.json");
    const checks = file !== undefined && existsSync(file) ? readChecks(file) : [];
    const having = (status: string): number => checks.filter((check) => check.status === status).length;
    return { name, checks, passed: having("SUCCESS"), failed: having("FAILURE") };
  });
}

/** How a scenario counts, and what to say about it beyond its checks. */
export interface Verdict {
  readonly kind: "passed" | "failed" | "known";
  readonly note?: string;
}

/**
 * A scenario passes when at least one check succeeded and none failed. A known failure is let through; a scenario that is
 * known to fail and passes is a failure, or the baseline would hide the next one.
 */
export function verdict({ passed, failed }: Scenario, known: Known | undefined): Verdict {
  if (passed > 0 && failed === 0) {
    if (!known) return { kind: "passed" };
    return { kind: "failed", note: `✗ passes now: take line ${known.line} out of baseline.txt` };
  }
  if (known) return { kind: "known", note: `known: ${known.reason}` };
  return passed + failed === 0 ? { kind: "failed", note: "✗ no check ran" } : { kind: "failed" };
}
