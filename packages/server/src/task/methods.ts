import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { JsonObject } from "@tenon/core";
import { countAnswer } from "@tenon/core/internal";
import type { TaskRecord, TaskStore } from "@tenon/store";
import { demandScopes } from "../definition/access.ts";
import type { Registry } from "../definition/registry.ts";
import { abilityFor } from "../dispatch/capabilities.ts";
import type { Extension, ExtensionExchange } from "../extension/extensions.ts";
import type { Caller } from "../handler/context.ts";
import { readAnswer } from "../question/asking.ts";
import { TASK_ID } from "./creation.ts";
import { detailedTask, ownerOf, TASKS_EXTENSION } from "./wire.ts";

/** What there is no task for: the same words for an id nobody has, one that expired and one of somebody else. */
const unknownTask = (): ProtocolError =>
  new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    "There is no task with this taskId: it was never given out to this caller, or its time is over",
    { reason: "unknown_task" },
  );

/** @returns the task, where there is one with this id that belongs to the caller */
export async function findOwn(
  store: TaskStore,
  server: string,
  id: unknown,
  caller: Caller | undefined,
): Promise<TaskRecord | undefined> {
  if (typeof id !== "string" || !TASK_ID.test(id)) return undefined;
  const record = await store.find(id);
  return record?.server === server && record.owner === ownerOf(caller) ? record : undefined;
}

/** Those of a client's answers that are one, to questions that are open. */
function answersTo({ requests }: TaskRecord, responses: Readonly<Record<string, unknown>>): Record<string, JsonObject> {
  const counted: [string, JsonObject][] = [];
  for (const [key, request] of Object.entries(requests)) {
    if (!Object.hasOwn(responses, key)) continue;
    const ability = abilityFor(request);
    const answer = ability && readAnswer(responses[key], ability === "tools" ? "sample" : ability);
    if (answer) counted.push([key, answer]);
  }
  return Object.fromEntries(counted);
}

/** Counts what people said, where it was a form or a page. */
function count({ requests }: TaskRecord, answers: Readonly<Record<string, JsonObject>>): void {
  for (const [key, { action }] of Object.entries(answers)) {
    const ability = abilityFor(requests[key]);
    if (ability !== "form" && ability !== "url") continue;
    if (action === "accept" || action === "decline" || action === "cancel") countAnswer("server", ability, action);
  }
}

/** The acknowledgement of what was asked for: what became of it, `tasks/get` tells. */
const DONE = { resultType: "complete" } as const;

/**
 * The methods of the tasks extension. Who may look at a task and cancel it is decided by whose it is; who answers its questions
 * lets the tool go on, and needs its scopes as a call does.
 */
export function taskExtension(store: TaskStore, server: string, registry: Registry): Extension {
  const own = async (params: unknown, exchange: ExtensionExchange): Promise<TaskRecord> => {
    const { taskId } = params as { taskId?: unknown }; // an extension's parameters are an object
    const record = await findOwn(store, server, taskId, exchange.caller);
    if (!record) throw unknownTask();
    return record;
  };
  return {
    id: TASKS_EXTENSION,
    eras: ["modern"],
    requires: "declared",
    methods: {
      "tasks/get": {
        handler: async (params, exchange) => ({ ...DONE, ...detailedTask(await own(params, exchange)) }),
      },
      "tasks/update": {
        async handler(params, exchange) {
          const record = await own(params, exchange);
          const tool = registry.tools.get(record.tool);
          if (tool) demandScopes(`Tool ${record.tool}`, tool.access, exchange);
          const answers = answersTo(record, exchange.inputResponses ?? {});
          if (Object.keys(answers).length > 0 && (await store.answer(record.id, answers))) count(record, answers);
          return DONE;
        },
      },
      "tasks/cancel": {
        async handler(params, exchange) {
          await store.cancel((await own(params, exchange)).id);
          return DONE;
        },
      },
    },
  };
}
