import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Known } from "./baseline.ts";

/** Which side of the protocol is tested. */
export type Side = "server" | "client";

/** What our client prints last: a client that broke off early can leave a scenario with nothing but successes. */
export const FINISHED = "finished";

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

/** The newest folder of a scenario; the suite adds the time to the name, and `auth/` is a folder of its own. */
function folderOf(directory: string, scenario: string, side: Side): string | undefined {
  const path = join(directory, side === "server" ? `server-${scenario}` : scenario);
  const parent = dirname(path);
  const found = existsSync(parent)
    ? readdirSync(parent).filter((entry) => entry.replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, "") === basename(path))
    : [];
  const last = found.sort().at(-1);
  return last === undefined ? undefined : join(parent, last);
}

/** Whether the client came to the end of its part; if not, the last of what it wrote to its standard error. */
function finishedCheck(folder: string): Check {
  const read = (file: string) => (existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8") : "");
  const finished = read("stdout.txt").split("\n").includes(FINISHED);
  const reason = read("stderr.txt").trim().slice(-500);
  return { id: "client-finished", status: finished ? "SUCCESS" : "FAILURE", message: finished ? undefined : reason };
}

function readScenario(name: string, folder: string | undefined, side: Side): Scenario {
  const file = folder === undefined ? undefined : join(folder, "checks.json");
  const checks = file !== undefined && existsSync(file) ? readChecks(file) : [];
  const having = (status: string): number => checks.filter((check) => check.status === status).length;
  const passed = having("SUCCESS");
  const broken = side === "client" && folder !== undefined ? [finishedCheck(folder)].filter(isFailure) : [];
  return { name, checks: [...checks, ...broken], passed, failed: having("FAILURE") + broken.length };
}

const isFailure = ({ status }: Check): boolean => status === "FAILURE";

/**
 * Reads what the suite wrote, one folder a scenario. A scenario that left nothing has no checks, and a client that did not
 * come to its end has one more that failed: neither must look like success.
 * @param expected every scenario that must have run
 */
export function readOutcomes(directory: string, expected: readonly string[], side: Side): Scenario[] {
  return expected.map((name) => readScenario(name, folderOf(directory, name, side), side));
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
