import { MissingRequiredClientCapabilityError, type Result } from "@modelcontextprotocol/server";
import { isRecord, type JsonObject, META } from "@tenon/core";
import { digest } from "@tenon/core/internal";
import type { TaskRecord } from "@tenon/store";
import { identityOfCaller } from "../auth/caller.ts";
import type { Caller, ClientDescription } from "../handler/context.ts";

/** The tasks extension of 2026-07-28 (SEP-2663). */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** Whether the client of a request said that it understands tasks. */
export const declaresTasks = ({ capabilities }: ClientDescription): boolean =>
  isRecord(capabilities.extensions?.[TASKS_EXTENSION]);

/** The refusal of whoever did not: -32021 naming the extension. @param what needs it, as a message begins */
export function missingTasks(what: string): MissingRequiredClientCapabilityError {
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  const message = `${what} needs a client that declares the extension ${TASKS_EXTENSION} (2026-07-28)`;
  return new MissingRequiredClientCapabilityError({ requiredCapabilities }, message);
}

/** Who a task belongs to, without saying who they are. Callers without a token are one: the id is all they have. */
export const ownerOf = (caller: Caller | undefined): string => digest(["task", identityOfCaller(caller)]);

const time = (ms: number): string => new Date(ms).toISOString();

/** A task as every message about it has it. */
export function taskOf(record: TaskRecord): JsonObject {
  const { id, status, statusMessage, progress, createdAt, updatedAt, ttlMs, pollIntervalMs } = record;
  return {
    taskId: id,
    status,
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt: time(createdAt),
    lastUpdatedAt: time(updatedAt),
    ttlMs,
    pollIntervalMs,
    ...(progress !== undefined && { _meta: { [META.progress]: progress } }),
  };
}

/** A task with what its status adds: open questions, the result or the error. */
export function detailedTask(record: TaskRecord): JsonObject {
  const { status, requests, result, error } = record;
  return {
    ...taskOf(record),
    ...(status === "input_required" && { inputRequests: { ...requests } }),
    ...(status === "completed" && { result: result ?? {} }),
    ...(status === "failed" && { error: error ?? {} }),
  };
}

/** What the call gets that became a task. @param replayed it was one already, of an earlier call with the same key */
export function createdTask(record: TaskRecord, replayed: boolean): Result {
  const { _meta, ...task } = taskOf(record);
  const meta = { ...(isRecord(_meta) && _meta), ...(replayed && { [META.replayed]: true }) };
  return { resultType: "task", ...task, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
}
