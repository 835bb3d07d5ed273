import { isRecord, META, ProtocolError } from "@tenon/core";
import { sendRequest, type TaskMethod, type WireContext, type WireRequest } from "../call/wire.ts";
import type { Via } from "../connection/endpoint.ts";
import type { EventSource } from "../types/events.ts";
import { readTask, taskInWords, type WireTask } from "./task.ts";

const INVALID_PARAMS = -32_602;

/** A task, and how requests about it are sent. */
export interface TaskTarget {
  readonly context: WireContext;
  readonly taskId: string;
  /** Wire name of the tool that was called, where it is known. */
  readonly tool: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly source: EventSource;
  /** The process of a pool that began it. */
  readonly via: Via;
}

/** The JSON-RPC code of a refusal; undefined for any other error. */
export function refusedWith(error: unknown): number | undefined {
  if (!(error instanceof ProtocolError) || error.code !== "rpc_error" || !isRecord(error.data)) return undefined;
  return typeof error.data.code === "number" ? error.data.code : undefined;
}

/** One request about a task; it may be repeated. @throws TenonError */
export function sendTask(
  { context, taskId, tool, headers, meta, source, via }: TaskTarget,
  method: TaskMethod,
  signal: AbortSignal,
  params: Readonly<Record<string, unknown>> = {},
): Promise<Record<string, unknown>> {
  // the key named the beginning of the task
  const { [META.idempotencyKey]: _key, ...rest } = meta;
  const what = `${method} (${taskInWords(taskId, tool)})`;
  const wire: WireRequest = { method, what, params: { taskId, ...params }, headers, meta: rest, signal, source };
  // a replica that does not share its store with the others knows its own tasks only
  const lacks = (error: unknown) => refusedWith(error) === INVALID_PARAMS;
  return sendRequest(context, wire, {}, { mayRepeat: () => true, lacks, via });
}

/** Looks at a task once. @throws ProtocolError `task_gone`, `bad_answer`; TenonError */
export async function getTask(target: TaskTarget, signal: AbortSignal): Promise<WireTask> {
  const { context, taskId, tool } = target;
  const { name: server } = context.server;
  try {
    const raw = await sendTask(target, "tasks/get", signal);
    return readTask(server, `tasks/get (${taskInWords(taskId, tool)})`, raw, taskId);
  } catch (error) {
    if (refusedWith(error) !== INVALID_PARAMS) throw error;
    throw new ProtocolError(
      `server "${server}" does not know ${taskInWords(taskId, tool)}: its time is over, its server lost it, or it belongs ` +
        "to somebody else. What it did may have taken effect: check before you repeat the call",
      { code: "task_gone", server, maybeExecuted: true, data: { taskId }, cause: error },
    );
  }
}
