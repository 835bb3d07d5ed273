import { randomBytes } from "node:crypto";
import type { Result } from "@modelcontextprotocol/server";
import { ConfigError } from "@tenon/core";
import { digest } from "@tenon/core/internal";
import type { TaskRecord, TaskStore } from "@tenon/store";
import { identityOfCaller } from "../auth/caller.ts";
import type { Exchange } from "../handler/context.ts";
import type { Journal } from "../handler/journal.ts";
import { idempotencyKeyOf } from "../question/rounds.ts";
import { refuse } from "../question/seal.ts";
import { packCall } from "./call.ts";
import type { CompiledTask, TaskDefaults } from "./options.ts";
import { createdTask, ownerOf } from "./wire.ts";

/** A call that is to become a task. */
export interface Beginning {
  /** The tool's name for callers. */
  readonly tool: string;
  readonly task: CompiledTask;
  /** As they came. */
  readonly args: unknown;
  readonly exchange: Exchange;
  /** What was answered and done before, where the handler itself made the call a task. */
  readonly journal?: Journal | undefined;
}

/** How an id of ours looks: 192 random bits. What does not look like one is not looked for. */
export const TASK_ID = /^task_[A-Za-z0-9_-]{32}$/;

/**
 * Makes calls of one key the same task: the caller's idempotency key, or the call whose handler made itself a task, so that its
 * retry finds that task.
 */
function callKeyOf(server: string, { tool, args, exchange, journal }: Beginning) {
  const principal = identityOfCaller(exchange.caller);
  if (journal) return { key: digest([principal, server, tool, "call", journal.call]), digest: digest(args ?? {}) };
  const key = idempotencyKeyOf(exchange);
  if (key === undefined) return undefined;
  return { key: digest([principal, server, tool, "key", key]), digest: digest(args ?? {}) };
}

/**
 * Keeps the task, and only then answers the call.
 * @throws ProtocolError -32602 with `data.reason` `answered` when the idempotency key was used with other arguments
 */
export async function createTask(
  store: TaskStore,
  { server, defaults }: { server: string; defaults: TaskDefaults },
  beginning: Beginning,
): Promise<Result> {
  const { tool, task, args, exchange, journal } = beginning;
  const id = `task_${randomBytes(24).toString("base64url")}`; // never begins like an option of a command line
  const callKey = callKeyOf(server, beginning);
  const { ttlMs = defaults.ttlMs, pollIntervalMs = defaults.pollIntervalMs } = task;
  let record: TaskRecord;
  try {
    record = await store.create({
      id,
      server,
      tool,
      owner: ownerOf(exchange.caller),
      ...(callKey && { callKey }),
      call: packCall(args, exchange, journal),
      ttlMs,
      pollIntervalMs,
    });
  } catch (error) {
    if (!(error instanceof ConfigError) || error.code !== "call_key") throw error;
    throw refuse(
      "answered",
      "The idempotency key was used for a call with other arguments; a new call needs a new key",
    );
  }
  return createdTask(record, record.id !== id);
}
