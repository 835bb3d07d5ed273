import { setTimeout as sleep } from "node:timers/promises";
import type { Caller, TenonServer } from "../src/index.ts";
import { type Asking, ask, type Reply } from "./ask.ts";

export const TASKS = "io.modelcontextprotocol/tasks";
/** A client that understands tasks and can be asked everything. */
export const ABLE = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {}, extensions: { [TASKS]: {} } };

/** A task as it comes over the wire, with whatever its status adds. */
export interface WireTask {
  resultType: string;
  taskId: string;
  status: string;
  statusMessage?: string;
  createdAt: string;
  lastUpdatedAt: string;
  ttlMs: number | null;
  pollIntervalMs: number;
  inputRequests?: Record<string, { method: string; params: { message: string } }>;
  result?: { resultType: string; content: { type: string; text: string }[]; isError?: boolean };
  error?: { code: number; message: string; data?: unknown };
  _meta?: Record<string, unknown>;
}

export type Asked = Pick<TenonServer, "fetch">;
export const caller = (subject: string, scopes: string[] = []): Caller => ({ subject, scopes, claims: {} });

/** One request of a client that declares the extension. */
export const request = (server: Asked, method: string, params: object, asking: Asking = {}): Promise<Reply> =>
  ask(server, method, params as Record<string, unknown>, { capabilities: ABLE, ...asking });

/** Calls a tool whose call becomes a task. */
export async function begin(server: Asked, name: string, args: object = {}, asking: Asking = {}): Promise<WireTask> {
  const reply = await request(server, "tools/call", { name, arguments: args }, asking);
  if (reply.error || reply.result?.resultType !== "task") throw new Error(`no task: ${JSON.stringify(reply)}`);
  return reply.result as unknown as WireTask;
}

export async function look(server: Asked, taskId: string, asking: Asking = {}): Promise<WireTask> {
  const reply = await request(server, "tasks/get", { taskId }, asking);
  if (!reply.result) throw new Error(JSON.stringify(reply.error));
  return reply.result as unknown as WireTask;
}

/** Looks until the task is as `until` wants it. */
export async function follow(
  server: Asked,
  taskId: string,
  until: (task: WireTask) => boolean = ended,
  asking: Asking = {},
  waitMs = 30_000,
): Promise<WireTask> {
  for (const late = Date.now() + waitMs; ; ) {
    const task = await look(server, taskId, asking);
    if (until(task)) return task;
    if (Date.now() > late) throw new Error(`the task stays ${JSON.stringify(task)}`);
    await sleep(15);
  }
}

export const ended = ({ status }: WireTask): boolean => ["completed", "failed", "cancelled"].includes(status);
export const asks = ({ status }: WireTask): boolean => status === "input_required";

/** Answers open questions by their message. */
export async function answer(
  server: Asked,
  task: WireTask,
  answers: Record<string, unknown>,
  asking: Asking = {},
): Promise<Reply> {
  const inputResponses = Object.fromEntries(
    Object.entries(task.inputRequests ?? {}).flatMap(([key, { params }]) =>
      Object.hasOwn(answers, params.message) ? [[key, answers[params.message]]] : [],
    ),
  );
  return request(server, "tasks/update", { taskId: task.taskId, inputResponses }, asking);
}

/** The text of an ended task's result. */
export const said = ({ result, error, status }: WireTask): string =>
  result?.content.map((block) => block.text).join("\n") ?? error?.message ?? status;
