import { serializeError } from "@tenon/core";
import { checkResult, toToolResult } from "../call/results.ts";
import type { WireContext } from "../call/wire.ts";
import { parseQuestions } from "../question/questions.ts";
import type { TaskHandle } from "../types/tasks.ts";
import { endingOf, rawResultOf, taskInWords, type WireTask } from "./task.ts";

/**
 * A task as programs see it: its questions parsed, its result checked, its end as an error.
 * @throws ProtocolError `bad_answer`, `unsupported_question`, TrustError `unsafe_url`, `unexpected_host`
 */
export function handleOf(context: WireContext, tool: string | undefined, task: WireTask): TaskHandle {
  const { name: server, config } = context.server;
  const { taskId, status, inputRequests, lastUpdatedAt, result: _raw, error: _error, ...rest } = task;
  const { rest: asked } = context.peers.split(inputRequests);
  const questions = parseQuestions(server, asked, config.expectHosts);
  const error = endingOf(server, tool, task);
  const shown = tool ?? taskInWords(taskId, tool);
  return Object.freeze({
    id: taskId,
    server,
    ...(tool !== undefined && { tool }),
    status,
    ...rest,
    ...(lastUpdatedAt !== undefined && { updatedAt: lastUpdatedAt }),
    ...(Object.keys(questions).length > 0 && { questions }),
    ...(status === "completed" &&
      task.result !== undefined && {
        result: toToolResult(checkResult(server, shown, rawResultOf(server, tool, task))),
      }),
    ...(error && { error: serializeError(error) }),
  });
}
