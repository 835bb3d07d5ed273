import { ProtocolError } from "@tenon/core";
import { isToolResult } from "../call/results.ts";
import type { WireContext } from "../call/wire.ts";
import { cancelled, withSignal } from "../connection/deadline.ts";
import type { Endpoint } from "../connection/endpoint.ts";
import { expectText } from "../expect.ts";
import { checkResumeOptions, checkStartOptions, checkTaskOptions } from "../options.ts";
import { checkAnswers } from "../question/questions.ts";
import type { CallOptions, ToolCallOutcome, ToolRuntime } from "../types/calls.ts";
import type { ClientTasks, TaskRequestOptions } from "../types/tasks.ts";
import { handleOf } from "./handle.ts";
import { getTask, refusedWith, sendTask, type TaskTarget } from "./requests.ts";

/** What `client.tasks` needs of its client. */
export interface TaskDesk<Runtime extends ToolRuntime, Extra> {
  /** Ends with the client. */
  readonly signal: AbortSignal;
  /** @throws ConfigError `unknown_server` */
  server(name: string): Endpoint;
  /** What one request needs. @throws ConfigError `unknown_server` */
  context(server: string, options: TaskRequestOptions): WireContext;
  /** Sends a call through the interceptors, which ends with the beginning of a task, or follows one. */
  call(
    server: string,
    tool: string,
    args: Record<string, unknown>,
    options: CallOptions<Runtime>,
    how: { readonly starts: true } | { readonly task: string },
  ): Promise<ToolCallOutcome<Extra>>;
}

/** @throws ProtocolError `no_tasks`, and what opening a connection throws */
async function needTasks(server: Endpoint, what: string, signal: AbortSignal): Promise<void> {
  const connection = await withSignal(server.connection(), signal, () =>
    cancelled(server.name, what, signal.reason, false),
  );
  if (connection.hasTasks) return;
  const why =
    connection.era === "modern"
      ? "it does not declare the extension io.modelcontextprotocol/tasks"
      : "it speaks a revision before 2026-07-28";
  throw new ProtocolError(`server "${server.name}" has no tasks: ${why}. ${what} was not sent`, {
    code: "no_tasks",
    server: server.name,
    maybeExecuted: false,
  });
}

/** @throws ConfigError `invalid_option` */
function checkId(method: string, id: unknown): void {
  expectText(id, `client.tasks.${method}(server, id): id`);
}

/** `client.tasks` of one client. */
export function createClientTasks<Runtime extends ToolRuntime, Extra>(
  desk: TaskDesk<Runtime, Extra>,
): ClientTasks<Runtime, Extra> {
  const signalOf = ({ signal }: { signal?: AbortSignal }): AbortSignal =>
    signal ? AbortSignal.any([signal, desk.signal]) : desk.signal;

  /** The task and the signal of one request about it. */
  const targetOf = async (
    method: string,
    server: string,
    id: string,
    options: TaskRequestOptions,
  ): Promise<{ target: TaskTarget; signal: AbortSignal }> => {
    checkTaskOptions(options, method);
    checkId(method, id);
    const { tool, headers = {}, meta = {} } = options;
    const context = desk.context(server, options);
    const signal = signalOf(options);
    await needTasks(context.server, `tasks/${method === "answer" ? "update" : method}`, signal);
    const source = { server, ...(tool !== undefined && { tool }), callId: context.callId, taskId: id };
    return { target: { context, taskId: id, tool, headers, meta, source, via: {} }, signal };
  };

  return Object.freeze<ClientTasks<Runtime, Extra>>({
    async start(server, tool, args = {}, options = {}) {
      checkStartOptions(options);
      await needTasks(desk.server(server), `tools/call ${tool}`, signalOf(options));
      const outcome = await desk.call(server, tool, args, options, { starts: true });
      if (isToolResult(outcome) && outcome.task) return outcome.task;
      return Object.freeze({ id: undefined, server, tool, status: "completed", result: outcome });
    },
    async get(server, id, options = {}) {
      const { target, signal } = await targetOf("get", server, id, options);
      return handleOf(target.context, target.tool, await getTask(target, signal));
    },
    async answer(server, id, answers, options = {}) {
      const { target, signal } = await targetOf("answer", server, id, options);
      const { questions = {} } = handleOf(target.context, target.tool, await getTask(target, signal));
      const open = Object.entries(questions).filter(([key]) => Object.hasOwn(answers, key));
      const inputResponses = checkAnswers(server, Object.fromEntries(open), answers);
      const keys = Object.keys(inputResponses);
      if (keys.length > 0) await sendTask(target, "tasks/update", signal, { inputResponses });
      return keys;
    },
    async cancel(server, id, options = {}) {
      const { target, signal } = await targetOf("cancel", server, id, options);
      await sendTask(target, "tasks/cancel", signal).catch(async (error: unknown) => {
        // what is wrong is that there is no such task, or something else
        if (refusedWith(error) !== undefined) await getTask(target, signal);
        throw error;
      });
    },
    async resume(server, id, options = {}) {
      checkResumeOptions(options);
      checkId("resume", id);
      await needTasks(desk.server(server), "tasks/get", signalOf(options));
      const { tool = "", ...rest } = options;
      return desk.call(server, tool, {}, rest, { task: id });
    },
  });
}
