/**
 * Breaks a small world of servers, workers and agents under load, and checks what is left: `npm run chaos -- [--seconds n]
 * [--database sqlite|postgres] [--seed n] [--sabotage idempotency|journal|lease|audit]`. Ends with `N passed, N failed`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { ownMounts } from "./disk.ts";
import { parseFlags } from "./flags.ts";
import { type Outcome, runOrdeal } from "./ordeal.ts";
import { makePrograms } from "./programs.ts";
import type { WorldOptions } from "./world.ts";

/** What a world's process is told, in its environment. */
const WORLD = "TENON_CHAOS_WORLD";

/** Kinds of faults to leave out, comma-separated: to find the one that something depends on. */
const WITHOUT = "TENON_CHAOS_WITHOUT";

/** A world in a process of its own, on SQLite with file systems of its own. */
async function runApart(options: WorldOptions): Promise<Outcome | undefined> {
  const impossible: Record<string, string> = {};
  for (const kind of (process.env[WITHOUT] ?? "").split(",").filter(Boolean)) impossible[kind] = `${WITHOUT} names it`;
  let command: readonly string[] = [];
  let env: Record<string, string> = {};
  if (options.database === "sqlite") {
    const own = ownMounts();
    if ("missing" in own) impossible.disk ??= own.missing;
    else ({ command, env } = own);
  }
  const told: WorldOptions = { ...options, impossible };
  const [program = "", ...args] = [...command, process.execPath, ...process.execArgv, process.argv[1] ?? ""];
  const child = spawn(program, args, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: { ...process.env, ...env, [WORLD]: JSON.stringify(told) },
  });
  let outcome: Outcome | undefined;
  child.on("message", (message) => {
    outcome = message as Outcome; // the same program sent it
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => child.kill("SIGTERM"));
  await once(child, "exit");
  return outcome;
}

function report({ checks }: Outcome): { passed: number; failed: number } {
  for (const { name, problems } of checks) {
    console.log(`${problems.length === 0 ? "✓" : "✗"} ${name}`);
    for (const problem of problems.slice(0, 10)) console.log(`    ${problem}`);
    if (problems.length > 10) console.log(`    and ${problems.length - 10} more`);
  }
  const failed = checks.filter(({ problems }) => problems.length > 0).length;
  return { passed: checks.length - failed, failed };
}

async function main(): Promise<number> {
  const { databases, seconds, seed, sabotage } = parseFlags(process.argv.slice(2));
  console.log(`--seed ${seed}`);
  const programs = await makePrograms();
  const sum = { passed: 0, failed: 0, kills: 0, effects: 0, questions: 0, tasks: 0 };
  try {
    for (const database of databases) {
      console.log(`\n━━ ${database}, ${seconds} s${sabotage === undefined ? "" : `, without ${sabotage}`}`);
      const outcome = await runApart({ database, seconds, seed, sabotage, programs, impossible: {} });
      if (!outcome) return 2; // it has said why
      const { passed, failed } = report(outcome);
      sum.passed += passed;
      sum.failed += failed;
      for (const what of ["kills", "effects", "questions", "tasks"] as const) sum[what] += outcome[what];
    }
  } finally {
    programs.remove();
  }
  const { kills, effects, questions, tasks, passed, failed } = sum;
  if (sabotage !== undefined && failed === 0) {
    console.log(
      `\nnothing noticed that ${sabotage} is missing: no fault fell where it counts; take more --seconds, or another --seed`,
    );
  }
  console.log(`\nkills ${kills}, effects ${effects}, questions ${questions}, tasks ${tasks}`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

const world = process.env[WORLD];
if (world === undefined) process.exit(await main());

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop.abort());
process.on("disconnect", () => stop.abort()); // nobody would read the outcome
// runApart wrote it
const outcome = await runOrdeal(JSON.parse(world) as WorldOptions, (line) => console.log(line), stop.signal).catch(
  (error: unknown) => {
    console.error(`chaos: ${stop.signal.aborted ? "stopped" : error instanceof Error ? error.message : String(error)}`);
    process.exit(2);
  },
);
await new Promise<void>((resolve) => process.send?.(outcome, () => resolve()));
process.exit(0);
