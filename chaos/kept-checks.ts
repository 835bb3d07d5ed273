import { setTimeout as sleep } from "node:timers/promises";
import type { Check, Evidence } from "./checks.ts";
import type { Ledger } from "./ledger.ts";

const FINAL = new Set(["completed", "failed", "cancelled"]);

/** The longest lease that anybody takes, and a little more. */
const LEASE_MS = 20_000;

/** What is still held when everybody is gone and the time of the last lease is over. */
async function heldLeases(ledger: Ledger): Promise<string[]> {
  const deadline = Date.now() + LEASE_MS;
  for (;;) {
    const leases = await ledger.kept("tenon_leases");
    const claims = await ledger.kept("tenon_outcomes");
    const held = [
      ...leases.filter(({ holder, expires_at }) => holder !== "" && Number(expires_at) > Date.now()),
      ...claims.filter(({ status, lease_until }) => status === "running" && Number(lease_until) > Date.now()),
    ];
    if (held.length === 0 || Date.now() > deadline) return held.map((lease) => JSON.stringify(lease).slice(0, 300));
    await sleep(500);
  }
}

/** Looks at what the libraries keep: tasks, leases. Everything is stopped by now. */
export async function checkKept({ courses, ledger }: Evidence): Promise<Check[]> {
  const tasks = await ledger.kept("tenon_tasks");
  const byId = new Map(tasks.map((task) => [String(task.id), task]));
  const lost = courses.flatMap(({ story, task }) =>
    task === undefined || byId.has(task) ? [] : [`${story.thread} was given task ${task}, which is gone`],
  );
  for (const { id, status, error } of tasks) {
    if (!FINAL.has(String(status))) lost.push(`task ${String(id)} is left ${String(status)}`);
    if (status === "failed") lost.push(`task ${String(id)} has failed: ${String(error)}`);
  }
  return [
    { name: "each accepted task is kept, and has been run to its end", problems: lost },
    { name: "no lease is left held", problems: await heldLeases(ledger) },
  ];
}
