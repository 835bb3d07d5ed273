/** Runs every example, or those named: `npm run examples -- math weather`. Each checks itself and exits non-zero when it fails. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

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

/** Runs one example; what it prints is shown when it has ended, since others run beside it. */
async function run(name: string): Promise<boolean> {
  const child = spawn(process.execPath, ["--import", "tsx", "client.ts"], {
    cwd: join(here, name),
    stdio: ["inherit", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  const closed = once(child, "close");
  const code = await new Promise<number | null>((resolve) => child.once("exit", resolve));
  clearTimeout(timer);
  await Promise.race([closed, sleep(1_000)]); // its last words; a process that it left behind may keep the pipe open
  console.log(`\n── ${name}\n${output.trimEnd()}`);
  if (code !== 0) console.log(`✗ ${name} ended with ${code ?? "a time-out"}`);
  return code === 0;
}

let passed = 0;
const names = wanted.length > 0 ? wanted : all;
const waiting = [...names];
/** Runs one example after the other until none is left; no two use the same port. */
async function runRest(): Promise<void> {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) if (await run(name)) passed += 1;
}
await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, runRest));
console.log(`\n${passed} passed, ${names.length - passed} failed`);
process.exit(passed === names.length ? 0 : 1);
