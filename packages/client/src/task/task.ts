import { ExecutionError, isRecord, META, ProtocolError, type TenonError } from "@tenon/core";
import { kindOf, shownValue } from "@tenon/core/internal";
import { recordAt, textAt } from "../catalog/pages.ts";
import { hintFor } from "../connection/failure.ts";
import { progressEvent } from "../events.ts";
import type { TaskCreated } from "../types/calls.ts";
import type { ProgressEvent } from "../types/events.ts";
import type { TaskStatus } from "../types/tasks.ts";

/** Name of the extension, in the capabilities of both sides. */
export const TASKS = "io.modelcontextprotocol/tasks";

/** Characters of an id: it travels in a header too. */
const MAX_ID = 1_000;
/** Characters of a server's own words in an error. */
const MAX_SHOWN = 4_000;
/** Open questions of one answer: more than a person answers. */
const MAX_REQUESTS = 100;

const STATUSES: ReadonlySet<unknown> = new Set<TaskStatus>([
  "working",
  "input_required",
  "completed",
  "failed",
  "cancelled",
]);

/** A value in an error: an object may be nested too deeply to be written out. */
function shown(value: unknown): string {
  return typeof value === "object" || value === undefined ? kindOf(value) : shownValue(value);
}

/** A task as the wire tells of it, read part by part; what is optional and of the wrong kind is left out. */
export interface WireTask {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  readonly progress?: ProgressEvent;
  readonly createdAt?: string;
  readonly lastUpdatedAt?: string;
  readonly ttlMs?: number | null;
  readonly pollIntervalMs?: number;
  /** Open requests by key, as they came. */
  readonly inputRequests: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** True for an answer that says "it goes on as a task". */
export function isTaskCreated(answer: unknown): answer is TaskCreated {
  return isRecord(answer) && answer.resultType === "task";
}

export function isFinal({ status }: Pick<WireTask, "status">): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

function progressOf(raw: Record<string, unknown>, statusMessage: string | undefined): ProgressEvent | undefined {
  const { progress, total, message } = recordAt(recordAt(raw, "_meta"), META.progress);
  if (typeof progress !== "number") return undefined;
  const text = typeof message === "string" ? message : statusMessage;
  return progressEvent({
    progress,
    ...(typeof total === "number" && { total }),
    ...(text !== undefined && { message: text }),
  });
}

/**
 * Reads a task.
 * @param what the request it answers, in words
 * @param id the task that was asked for; none when it is a new one
 * @throws ProtocolError `bad_answer`
 */
export function readTask(server: string, what: string, raw: Readonly<Record<string, unknown>>, id?: string): WireTask {
  const fail = (reason: string): never => {
    throw new ProtocolError(`server "${server}" answered ${what} against the protocol: ${reason}`, {
      code: "bad_answer",
      server,
      maybeExecuted: true,
      ...(id !== undefined && { data: { taskId: id } }),
    });
  };
  const { taskId, status, ttlMs, pollIntervalMs, inputRequests, result, error } = raw;
  if (typeof taskId !== "string" || taskId === "") return fail(`its task has no id but ${shown(taskId)}`);
  if (taskId.length > MAX_ID) return fail(`the id of its task has ${taskId.length} characters, ${MAX_ID} are allowed`);
  if (id !== undefined && taskId !== id)
    return fail(`it tells of task ${shownValue(taskId)} instead of ${shownValue(id)}`);
  if (!STATUSES.has(status)) return fail(`the status of its task is ${shown(status)}, which is none of a task`);
  const requests = inputRequests ?? {};
  if (!isRecord(requests)) return fail(`the inputRequests of its task are no object but ${shown(requests)}`);
  const count = Object.keys(requests).length;
  if (count > MAX_REQUESTS) return fail(`its task asks ${count} questions at once, ${MAX_REQUESTS} are allowed`);
  const statusMessage = textAt(raw, "statusMessage");
  const createdAt = textAt(raw, "createdAt");
  const lastUpdatedAt = textAt(raw, "lastUpdatedAt");
  const progress = progressOf(raw, statusMessage);
  return {
    taskId,
    status: status as TaskStatus, // one of them: the set says so
    ...(statusMessage !== undefined && { statusMessage }),
    ...(progress && { progress }),
    ...(createdAt !== undefined && { createdAt }),
    ...(lastUpdatedAt !== undefined && { lastUpdatedAt }),
    ...((ttlMs === null || typeof ttlMs === "number") && { ttlMs }),
    ...(typeof pollIntervalMs === "number" && pollIntervalMs > 0 && { pollIntervalMs }),
    // some leave the requests in place when the task has ended
    inputRequests: status === "input_required" ? requests : {},
    ...(result !== undefined && { result }),
    ...(error !== undefined && { error }),
  };
}

/** A task in the words of errors, for example `task 7f3c of export`. */
export function taskInWords(taskId: string, tool: string | undefined): string {
  const id = taskId.length > 80 ? `${taskId.slice(0, 80)}…` : taskId;
  return tool ? `task ${id} of ${tool}` : `task ${id}`;
}

/** The error a task ended with; undefined for one that completed or goes on. */
export function endingOf(server: string, tool: string | undefined, task: WireTask): TenonError | undefined {
  const { taskId, status, statusMessage } = task;
  const words = taskInWords(taskId, tool);
  if (status === "cancelled") {
    const why = statusMessage === undefined ? "" : `: ${statusMessage.slice(0, MAX_SHOWN)}`;
    return new ExecutionError(
      `${words} on server "${server}" was cancelled${why}. What it did before stays done: check before you repeat the call`,
      { code: "task_cancelled", server, maybeExecuted: true, data: { taskId } },
    );
  }
  if (status !== "failed") return undefined;
  const error = isRecord(task.error) ? task.error : {};
  const code = typeof error.code === "number" ? error.code : -32_603;
  const said = textAt(error, "message") ?? statusMessage ?? "it gave no reason";
  return new ProtocolError(
    `${words} on server "${server}" failed: ${said.slice(0, MAX_SHOWN)} (JSON-RPC ${code})${hintFor(code)}`,
    {
      code: "rpc_error",
      server,
      maybeExecuted: true,
      data: { taskId, code, ...(error.data !== undefined && { data: error.data }) },
    },
  );
}

/** The raw result of a completed task. @throws ProtocolError `bad_answer` */
export function rawResultOf(server: string, tool: string | undefined, task: WireTask): Record<string, unknown> {
  const { result, taskId } = task;
  // the extension has it inlined without `resultType` as well as with it
  if (isRecord(result) && (result.resultType === undefined || result.resultType === "complete")) return result;
  throw new ProtocolError(
    `${taskInWords(taskId, tool)} on server "${server}" completed against the protocol: its result is ${isRecord(result) ? `of resultType ${shown(result.resultType)}` : shown(result)}`,
    { code: "bad_answer", server, maybeExecuted: true, data: { taskId } },
  );
}
