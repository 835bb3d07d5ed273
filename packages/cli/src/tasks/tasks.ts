import { isRecord } from "@tenon/core";
import type { TaskRecord, TaskStatus, TaskStore } from "@tenon/store";
import { attempt, CommandError } from "../failure.ts";
import { type Kept, openPlace, type PlaceFlags } from "../place.ts";
import { oneLine } from "../text.ts";

const TASKS: Kept = { files: ["tenon.sqlite", "servers.sqlite"], table: "tenon_tasks", name: "store of tasks" };

/** Opens the tasks for as long as the work lasts. */
async function withTasks(flags: PlaceFlags, what: string, work: (tasks: TaskStore) => Promise<void>): Promise<void> {
  await attempt(what, async () => {
    await using stores = await openPlace(flags, TASKS, what);
    await work(stores.tasks);
  });
}

const time = (ms: number): string => new Date(ms).toISOString();

/** How far a task is, as its handler last said. */
function progressOf({ progress }: TaskRecord): string {
  if (!isRecord(progress) || typeof progress.progress !== "number") return "";
  return typeof progress.total === "number" ? `${progress.progress}/${progress.total}` : String(progress.progress);
}

/** A task on one line, for a person: what others wrote cannot move the cursor. */
function line(task: TaskRecord): string {
  const { id, server, tool, status, updatedAt, statusMessage = "", dead, requests } = task;
  const questions = Object.keys(requests).length;
  const parts = [
    id,
    `${server}/${tool}`,
    dead ? `${status} (given up)` : status,
    time(updatedAt),
    progressOf(task),
    questions > 0 ? `${questions} open ${questions === 1 ? "question" : "questions"}` : "",
    statusMessage,
  ];
  return `${oneLine(parts.filter((part) => part !== "").join("  "))}\n`;
}

interface ListFlags extends PlaceFlags {
  readonly server?: string;
  readonly status?: TaskStatus;
  readonly dead?: boolean;
  readonly lines: number;
  readonly json?: boolean;
}

/** `tenon tasks list`. */
export async function list(flags: ListFlags): Promise<void> {
  const { server, status, dead, lines: limit, json } = flags;
  await withTasks(flags, "the tasks are not shown", async (tasks) => {
    const found = await tasks.list({
      limit,
      ...(server !== undefined && { server }),
      ...(status !== undefined && { status }),
      ...(dead !== undefined && { dead }),
    });
    const shown = found.map((task) => {
      const { call: _call, ...rest } = task;
      return json ? `${JSON.stringify(rest)}\n` : line(task);
    });
    process.stdout.write(shown.join(""));
    if (json) return;
    const counts = Object.entries(await tasks.count(server)).filter(([, count]) => count > 0);
    process.stdout.write(`${counts.map(([name, count]) => `${count} ${name}`).join(", ") || "no tasks"}\n`);
  });
}

async function find(tasks: TaskStore, id: string): Promise<TaskRecord> {
  const task = await tasks.find(id);
  if (task) return task;
  throw new CommandError(
    {
      what: `there is no task ${oneLine(id)}`,
      why: "it was never kept here, or its time is over and it was deleted",
      todo: "see: tenon tasks list",
    },
    { code: "not_found" },
  );
}

/** `tenon tasks show`. */
export async function show(id: string, flags: PlaceFlags & { json?: boolean }): Promise<void> {
  await withTasks(flags, "the task is not shown", async (tasks) => {
    const task = await find(tasks, id);
    if (flags.json) {
      process.stdout.write(`${JSON.stringify(task)}\n`);
      return;
    }
    const { call, requests, result, error, createdAt, ttlMs, fruitless } = task;
    const about = {
      created: time(createdAt),
      kept: ttlMs === null ? "until it is deleted" : `until ${time(createdAt + ttlMs)}`,
      ...(fruitless > 0 && task.status === "working" && { "runs without a step": fruitless }),
      arguments: isRecord(call) ? call.args : undefined,
      ...(Object.keys(requests).length > 0 && { questions: requests }),
      result,
      error,
    };
    process.stdout.write(line(task));
    for (const [name, value] of Object.entries(about)) {
      if (value === undefined) continue;
      process.stdout.write(`  ${name}: ${oneLine(typeof value === "string" ? value : JSON.stringify(value))}\n`);
    }
  });
}

/** `tenon tasks cancel`. */
export async function cancel(id: string, flags: PlaceFlags): Promise<void> {
  await withTasks(flags, "the task was not cancelled", async (tasks) => {
    if (await tasks.cancel(id)) {
      process.stdout.write("cancelled\n");
      return;
    }
    const { status } = await find(tasks, id);
    throw new CommandError(
      {
        what: "the task was not cancelled",
        why: `it has ended: ${status}`,
        todo: `see: tenon tasks show ${oneLine(id)}`,
      },
      { code: "ended" },
    );
  });
}

/** `tenon tasks retry`. */
export async function retry(id: string, flags: PlaceFlags): Promise<void> {
  await withTasks(flags, "the task was not set going again", async (tasks) => {
    if (await tasks.retry(id)) {
      process.stdout.write("working again, from its last finished step\n");
      return;
    }
    const { status } = await find(tasks, id);
    throw new CommandError(
      {
        what: "the task was not set going again",
        why: `only a task that was given up on can be tried again, and this one is ${status}`,
        todo: "those that can: tenon tasks list --dead",
      },
      { code: "not_dead" },
    );
  });
}
