/** Runs every example, or those named: `npm run examples -- math weather`. Each checks itself and exits non-zero when it fails. */
import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const here = import.meta.dirname;
const LIMIT_MS = 60_000;
const all = readdirSync(here)
  .filter((name) => existsSync(join(here, name, "client.ts")))
  .sort();
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  console.error(`No example called ${unknown.join(", ")}; there are: ${all.join(", ")}`);
  process.exit(1);
}

async function run(name: string): Promise<boolean> {
  console.log(`\n── ${name}`);
  const child = spawn(process.execPath, ["--import", "tsx", "client.ts"], { cwd: join(here, name), stdio: "inherit" });
  const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  const code = await new Promise<number | null>((resolve) => child.once("exit", resolve));
  clearTimeout(timer);
  if (code !== 0) console.log(`✗ ${name} ended with ${code ?? "a time-out"}`);
  return code === 0;
}

let passed = 0;
const names = wanted.length > 0 ? wanted : all;
for (const name of names) if (await run(name)) passed += 1;
console.log(`\n${passed} passed, ${names.length - passed} failed`);
process.exit(passed === names.length ? 0 : 1);
