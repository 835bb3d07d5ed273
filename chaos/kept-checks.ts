import { setTimeout as sleep } from "node:timers/promises";
import { isRecord } from "@tenon/core";
import type { Check, Evidence } from "./checks.ts";
import type { Ledger } from "./ledger.ts";

const FINAL = new Set(["completed", "failed", "cancelled"]);

/** The longest lease that anybody takes. */
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

/** A task works on a few orders at once, each in a step of its own: what was told so long ago is surely kept. */
const LANES = 12;

/**
 * Steps of tasks that were done again although their result was kept: the log tells of an order within its step, and of another one
 * of the same lane only when that step was kept.
 */
function repeatedSteps({ courses, lines }: Pick<Evidence, "courses" | "lines">): string[] {
  const taskOf = new Map<string, string>();
  for (const { story } of courses) {
    if (story.kind === "task" || story.kind === "long") for (const { id } of story.orders) taskOf.set(id, story.thread);
  }
  /** The orders of each task that were told of, and as the how manyth. */
  const told = new Map<string, Map<string, number>>();
  const repeated: string[] = [];
  for (const line of lines) {
    if (!line.includes('"of":"batch_refund"')) continue;
    const [order = ""] = /ORD-\d+/.exec(line) ?? [];
    const task = taskOf.get(order);
    if (task === undefined) continue;
    const orders = told.get(task) ?? new Map<string, number>();
    told.set(task, orders);
    const before = orders.get(order);
    if (before === undefined) orders.set(order, orders.size);
    else if (orders.size - before > LANES) {
      repeated.push(`${task} did the step of ${order} again, ${orders.size - before} orders later`);
    }
  }
  return repeated;
}

/** What the audit trail says of everything that was booked, once the calls of the dead are given up. */
async function checkAudit({ ledger, courses }: Evidence): Promise<Check[]> {
  await using stores = await ledger.openAudit();
  const { audit } = stores;
  const broken: string[] = [];
  await audit.sweep({ isGone: () => true }).catch((error: unknown) => broken.push(String(error)));
  const verdict = await audit.verify();
  if (!verdict.intact) broken.push(verdict.message);

  const intents = new Set<string>();
  const open = new Map<string, string>();
  for (let after = 0; ; ) {
    const page = await audit.read({ after, limit: 1_000 });
    for (const { kind, callId, pass, data } of page) {
      if (kind === "outcome") open.delete(`${callId} ${pass}`);
      if (kind !== "intent") continue;
      open.set(`${callId} ${pass}`, JSON.stringify(data).slice(0, 200));
      const args = isRecord(data.args) ? data.args : {};
      for (const order of [args.order_id, args.order_ids].flat())
        intents.add(`${String(order)} ${String(args.reason)}`);
      if (args.content !== undefined) intents.add(String(args.content));
    }
    const last = page.at(-1);
    if (!last) break;
    after = last.seq;
  }
  const effects = [
    ...(await ledger.refunds()).map(({ order_id, reason }) => `${order_id} ${reason}`),
    ...(await ledger.messages()).map(({ content }) => content),
  ];
  const known = new Set(courses.map(({ story }) => story.tag));
  const silent = effects.filter((effect) => !intents.has(effect) && known.has(effect.split(" ").at(-1) ?? ""));
  return [
    { name: "the audit trail is intact", problems: broken },
    {
      name: "each effect has its intent in the audit trail",
      problems: silent.map((effect) => `no intent of ${effect}`),
    },
    {
      name: "each intent has an outcome, known or unknown",
      problems: [...open].map(([call, data]) => `call ${call} has none: ${data}`),
    },
  ];
}

/** Looks at what the libraries keep: tasks, leases. Everything is stopped by now. */
export async function checkKept(evidence: Evidence): Promise<Check[]> {
  const { courses, ledger, lines } = evidence;
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
    ...(await checkAudit(evidence)),
    { name: "no lease is left held", problems: await heldLeases(ledger) },
  ];
}
