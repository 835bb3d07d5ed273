/**
 * The official conformance suite, pinned and offline, against our fixtures, and the official Inspector against our server:
 * `npm run conformance -- server|client [--revision …]`, `npm run conformance -- inspector`.
 * Prints every check and ends with `N passed, N failed`, counting scenarios.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { type Known, readBaseline } from "./baseline.ts";
import type { Scenario, Verdict } from "./results.ts";
import { verdict } from "./results.ts";
import { fail, install, runScenarios } from "./suite.ts";

const REVISIONS = ["2026-07-28", "2025-11-25"];
/** Scenarios of the Skills extension, which no list of requirements names. */
const SKILLS = ["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"];

async function ofServer(revisions: readonly string[], report: Report): Promise<void> {
  const { default: server } = await import("./fixture/server.ts");
  const { url } = await server.listen({ port: 0 });
  for (const revision of revisions) {
    const extra = revision === "2026-07-28" ? SKILLS : [];
    report(revision, await runScenarios({ side: "server", revision, args: ["--url", url], least: 30, extra }));
  }
  await server.close();
}

async function ofClient(revisions: readonly string[], report: Report): Promise<void> {
  // the suite starts a client for every scenario, all at once: plain JavaScript spares each the compiler
  const outfile = join(import.meta.dirname, "node_modules/.cache/client.mjs");
  const entryPoints = [join(import.meta.dirname, "fixture/client.ts")];
  await build({ entryPoints, outfile, bundle: true, packages: "external", platform: "node", format: "esm" });
  const turns = mkdtempSync(join(tmpdir(), "tenon-turns-"));
  const args = ["--command", `"${process.execPath}" "${outfile}" "${turns}"`, "--timeout", "240000"];
  for (const revision of revisions) {
    report(revision, await runScenarios({ side: "client", revision, args, least: 20, extra: [] }));
  }
  rmSync(turns, { recursive: true, force: true });
}

async function ofInspector(_: readonly string[], report: Report): Promise<void> {
  const { inspectAll } = await import("./inspector.ts");
  report("inspector", await inspectAll());
}

const TARGETS = { server: ofServer, client: ofClient, inspector: ofInspector };
type Report = (group: string, scenarios: readonly Scenario[]) => void;

/** One line a check, and how the scenario counts. */
function print(group: string, scenario: Scenario, known: Known | undefined): Verdict["kind"] {
  console.log(`\n── ${group} ${scenario.name}`);
  for (const { id, status, message } of scenario.checks) {
    const mark = status === "SUCCESS" ? "✓" : status === "FAILURE" ? "✗" : "·";
    console.log(`   ${mark} ${id}${status === "SUCCESS" || !message ? "" : `: ${message}`}`);
  }
  const { kind, note } = verdict(scenario, known);
  if (note) console.log(`   ${note}`);
  return kind;
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { revision: { type: "string" } } });
const [target = "server"] = positionals;
const names = Object.keys(TARGETS).join(", ");
if (!Object.hasOwn(TARGETS, target)) fail(`There is no target "${target}"; there are: ${names}`);
if (values.revision !== undefined && !REVISIONS.includes(values.revision)) {
  fail(`Unknown revision ${values.revision}; there are: ${REVISIONS.join(", ")}`);
}
install();

const baseline = readBaseline(join(import.meta.dirname, "baseline.txt"));
const count = { passed: 0, failed: 0, known: 0 };
const run = TARGETS[target as keyof typeof TARGETS]; // checked above
await run(values.revision === undefined ? REVISIONS : [values.revision], (group, scenarios) => {
  for (const scenario of scenarios) count[print(group, scenario, baseline.get(`${group} ${scenario.name}`))] += 1;
});
if (count.known > 0)
  console.log(`\n${count.known} known failures stand in conformance/baseline.txt, each with its reason`);
console.log(`\n${count.passed} passed, ${count.failed} failed`);
process.exit(count.failed === 0 ? 0 : 1);
