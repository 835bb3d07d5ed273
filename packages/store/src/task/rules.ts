import { ConfigError, type Json, type JsonObject } from "@tenon/core";
import { digest } from "@tenon/core/internal";
import { LeaseLostError } from "../outcome/outcomes.ts";
import type { NewTask, TaskQuestion, TaskRecord, TaskStatus } from "./tasks.ts";

// The rules of tasks that are the same for every store.

/** States nobody leaves, but for a task that is tried again after it was given up on. */
export const ENDED: readonly TaskStatus[] = ["completed", "failed", "cancelled"];

/** Any of {@link ENDED}. */
export const hasEnded = (status: TaskStatus): boolean => ENDED.includes(status);

/** The name of the lease of a task in the lease store. */
export const leaseName = (id: string): string => `task:${id}`;

/** A name as a part of a topic: short enough for any message, whatever a server is called. */
const short = (name: string): string => (/^[\w.:-]{1,100}$/.test(name) ? name : `~${digest(name)}`);

/** What whoever runs tasks of a server listens to. */
export const dueTopic = (server: string): string => `due:${short(server)}`;
/** What whoever follows a task listens to. */
export const changeTopic = (id: string): string => `task:${short(id)}`;

/** How often a store looks for what has fallen silent or expired, at most: whoever comes by does it. */
export const SWEEP_EVERY_MS = 5_000;

const LONGEST_NAME = 500;
const MOST_BYTES = 64 * 1024 * 1024;

/**
 * JSON text of something to keep.
 * @throws ConfigError `code: "too_large"` above 64 MiB
 */
export function pack(what: string, value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  const bytes = text.length > MOST_BYTES ? text.length : Buffer.byteLength(text);
  if (bytes <= MOST_BYTES) return text;
  throw new ConfigError(
    `${what} has ${bytes} bytes as JSON, and a task store keeps ${MOST_BYTES} (64 MiB) at most in one piece; keep it elsewhere ` +
      "and hand on where it is",
    { code: "too_large", data: { bytes } },
  );
}

/** JSON that {@link pack} wrote. */
export const unpack = (text: string): Json => JSON.parse(text) as Json; // pack() wrote it

/** The same for what was an object when it was packed. */
export const unpackObject = (text: string): JsonObject => JSON.parse(text) as JsonObject; // pack() wrote it from an object

/** Refuses a name that a database cannot keep or find again. @throws ConfigError `code: "task"` */
export function checkName(what: string, text: string): void {
  const fits = typeof text === "string" && text !== "" && text.length <= LONGEST_NAME;
  if (fits && !/\0|\p{Surrogate}/u.test(text)) return;
  const given =
    typeof text !== "string" ? typeof text : fits ? "one with a NUL or half a character" : `${text.length} characters`;
  throw new ConfigError(`${what} is a text of 1 to ${LONGEST_NAME} characters without NUL, given ${given}`, {
    code: "task",
  });
}

/** Refuses a task that no store can keep. @throws ConfigError `code: "task"` */
export function checkTask(task: NewTask): void {
  checkName("The id of a task", task.id);
  checkName("The server of a task", task.server);
  checkName("The tool of a task", task.tool);
  checkName("The owner of a task", task.owner);
  if (task.callKey) {
    checkName("The key of a call", task.callKey.key);
    checkName("The digest of a call", task.callKey.digest);
  }
  for (const [what, ms] of Object.entries({ ttlMs: task.ttlMs ?? 1, pollIntervalMs: task.pollIntervalMs })) {
    if (ms > 0 && ms <= 1e15) continue;
    throw new ConfigError(`${what} of a task is a positive number of milliseconds, given ${ms}`, { code: "task" });
  }
}

/** The key of a call was used with something else. */
export function otherCall(key: string): ConfigError {
  return new ConfigError(
    `The key "${key}" was used for another call; the same key with other arguments is refused. Use a new key for a new call`,
    { code: "call_key", data: { key } },
  );
}

/** Why a run may not write. */
export function lostRun(id: string, status: TaskStatus | undefined): LeaseLostError {
  const lease = { key: leaseName(id) };
  if (status === undefined) return new LeaseLostError(lease, "the task was deleted");
  if (hasEnded(status)) return new LeaseLostError(lease, `the task has ended meanwhile (${status})`);
  return new LeaseLostError(lease);
}

/** Questions that were asked, and what came back so far. */
export interface Asked {
  /** By the key on the wire. */
  readonly open: Readonly<Record<string, { readonly key: string; readonly request: Json }>>;
  /** By the handler's key. */
  readonly answers: Readonly<Record<string, JsonObject>>;
}

/** An object with any keys, `__proto__` too. */
const objectOf = <T>(entries: Iterable<readonly [string, T]>): Record<string, T> => Object.fromEntries(entries);

/**
 * Gives each question its key on the wire: the handler's own the first time, and one with a number when that was used before,
 * since keys are unique for the life of a task.
 * @param used every key there was on the wire
 * @throws ConfigError `code: "ask"` for a key that is named twice
 */
export function openQuestions(
  questions: readonly TaskQuestion[],
  used: readonly string[],
): { readonly asked: Asked; readonly used: readonly string[] } {
  const own = new Set(questions.map(({ key }) => key));
  if (own.size !== questions.length) {
    throw new ConfigError("A task asks each question once: two of them have the same key", { code: "ask" });
  }
  const taken = new Set(used);
  const open = questions.map(({ key, request }) => {
    let wire = key;
    for (let n = 2; taken.has(wire) || (wire !== key && own.has(wire)); n++) wire = `${key}~${n}`;
    taken.add(wire);
    return [wire, { key, request }] as const;
  });
  return { asked: { open: objectOf(open), answers: {} }, used: [...taken] };
}

/** @returns what is asked after these answers; undefined when none of them is to an open question */
export function takeAnswers(asked: Asked, answers: Readonly<Record<string, JsonObject>>): Asked | undefined {
  const counted = Object.entries(answers).filter(([wire]) => Object.hasOwn(asked.open, wire));
  if (counted.length === 0) return undefined;
  const given = new Map(counted);
  return {
    open: objectOf(Object.entries(asked.open).filter(([wire]) => !given.has(wire))),
    answers: objectOf([
      ...Object.entries(asked.answers),
      ...counted.map(([wire, answer]) => [asked.open[wire]?.key ?? wire, answer] as const),
    ]),
  };
}

/** Whether nothing is open any more. */
export const allAnswered = (asked: Asked): boolean => Object.keys(asked.open).length === 0;

/** The requests a client sees. */
export const requestsOf = (status: TaskStatus, asked: Asked | undefined): TaskRecord["requests"] =>
  status === "input_required" && asked
    ? objectOf(Object.entries(asked.open).map(([wire, { request }]) => [wire, request] as const))
    : {};

/** The error of a task whose time was over before it ended. */
export const TIME_OVER: JsonObject = { code: -32603, message: "The time of the task was over before it had ended" };

/** Runs in a row that came to nothing, after one that ended without an end of the task. */
export const fruitlessAfter = (before: number, progressed: boolean): number => (progressed ? 0 : before + 1);
