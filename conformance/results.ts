import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

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
