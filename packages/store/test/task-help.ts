import { setTimeout as sleep } from "node:timers/promises";
import type { NewTask, TaskRun, TaskStore } from "../src/index.ts";

let serial = 0;
/** A name nobody used before, also when several stores share a database. */
export const fresh = (what: string): string => `${what}-${process.pid}-${Date.now()}-${serial++}`;

/** A task nobody made before, of a server nobody else uses. */
export function newTask(given: Partial<NewTask> = {}): NewTask {
  return {
    id: fresh("task"),
    server: fresh("server"),
    tool: "reconcile",
    owner: "owner",
    call: { arguments: { day: "2026-11-30" } },
    ttlMs: 600_000,
    pollIntervalMs: 1_000,
    ...given,
  };
}

/** Takes the task, which must be the next one of its server. */
export async function takeTask(tasks: TaskStore, { id, server }: NewTask, holder = "me"): Promise<TaskRun> {
  const run = await tasks.take([server], holder);
  if (run?.task.id !== id) throw new Error(`expected ${id}, took ${run?.task.id}`);
  return run;
}

/** Asks until there is something. */
export async function eventually<T>(look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const limit = Date.now() + 15_000;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > limit) throw new Error("nothing came in 15 s");
    await sleep(20);
  }
}
