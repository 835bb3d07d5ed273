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

/**
 * Steps of tasks that were done again although their result was kept: the log tells of an order within its step, and of the next one
 * only when the step before it was kept.
 */
function repeatedSteps({ courses, lines }: Pick<Evidence, "courses" | "lines">): string[] {
  const taskOf = new Map<string, string>();
  for (const { story } of courses) {
    if (story.kind === "task" || story.kind === "long") for (const { id } of story.orders) taskOf.set(id, story.thread);
  }
  /** For each task the orders that were told of, and the latest of them. */
  const seen = new Map<string, { readonly orders: Set<string>; latest: string }>();
  const repeated = new Set<string>();
  for (const line of lines) {
    if (!line.includes('"of":"batch_refund"')) continue;
    const [order = ""] = /ORD-\d+/.exec(line) ?? [];
    const task = taskOf.get(order);
    if (task === undefined) continue;
    const before = seen.get(task) ?? { orders: new Set(), latest: order };
    if (before.orders.has(order) && before.latest !== order)
      repeated.add(`${task} did the step of ${order} again after ${before.latest}`);
    before.orders.add(order);
    before.latest = order;
    seen.set(task, before);
  }
  return [...repeated];
}

/** Looks at what the libraries keep: tasks, leases. Everything is stopped by now. */
export async function checkKept({ courses, ledger, lines }: Evidence): Promise<Check[]> {
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
    { name: "no finished step of a task is done again", problems: repeatedSteps({ courses, lines }) },
    { name: "no lease is left held", problems: await heldLeases(ledger) },
  ];
}
