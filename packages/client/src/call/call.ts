import { randomUUID } from "node:crypto";
import { ExecutionError, META, ProtocolError } from "@tenon/core";
import type { ToolList } from "../catalog/catalog.ts";
import { isRepeatable } from "../catalog/hints.ts";
import { checkArguments, checkOutput } from "../catalog/tool-checks.ts";
import { asUnknownTool, isUnknownTool, saysUnknown } from "../catalog/unknown-tool.ts";
import { cancelled, withSignal } from "../connection/deadline.ts";
import type { Via } from "../connection/endpoint.ts";
import { checkAnswers } from "../question/questions.ts";
import { followTask } from "../task/follow.ts";
import { handleOf } from "../task/handle.ts";
import { isTaskCreated, readTask } from "../task/task.ts";
import type { Gate } from "../trust/gate.ts";
import type { CallDriver, Leg, TaskCreated, ToolCallRequest, ToolResult, WireResult } from "../types/calls.ts";
import type { EventSource } from "../types/events.ts";
import type { FollowOptions } from "../types/tasks.ts";
import { linkSource, repeatsOf, suspending } from "./marks.ts";
import { asksForInput, checkResult, problemResult, toToolResult } from "./results.ts";
import { answerByHandler, type Carried, NO_DRIVER, untilFinal } from "./rounds.ts";
import { limitOf, sendRequest, type WireContext, type WireRequest } from "./wire.ts";

/** JSON-RPC code of the revision: the headers do not repeat the parameters the server declares for them. */
const HEADER_MISMATCH = -32_020;

/** What a call needs besides its request. */
export interface CallContext extends WireContext {
  readonly tools: ToolList;
  readonly driver: CallDriver | undefined;
  /** The arguments as the caller gave them. */
  readonly given: Readonly<Record<string, unknown>>;
  readonly gate: Gate;
  readonly follow: FollowOptions;
  /** Whether a call that becomes a task is over with that: `client.tasks.start`. */
  readonly starts: boolean;
}

/** What is kept of a call while it runs, beside its request. */
interface CallState {
  readonly source: EventSource;
  /** The process of a pool, or the replica, that has the call. */
  readonly via: Via;
  /** Names the call for a server that makes tasks, so that it may be sent again when its answer was lost. */
  readonly key: string;
}

function mismatch(error: unknown): boolean {
  if (!(error instanceof ProtocolError) || typeof error.data !== "object" || error.data === null) return false;
  return "code" in error.data && error.data.code === HEADER_MISMATCH;
}

/** Milliseconds of a call's time that may go into learning its tool's definition: half of what is left. */
function listLimit(context: CallContext, spentMs = 0): number {
  return Math.max(1, (limitOf(context) - spentMs) / 2);
}

/**
 * Whether a call may go out: by the configuration, by what was granted and accepted, and by its tool's schema.
 * @returns milliseconds of its time that are spent
 * @throws ConfigError, TrustError, ProtocolError, ExecutionError `invalid_arguments`; nothing was sent
 */
async function admit(context: CallContext, request: ToolCallRequest, round: number): Promise<number> {
  const { server, tools, gate } = context;
  const { name } = request;
  const known = tools.isKnown;
  await tools.admit(name);
  let spent = await gate.permit(server.name, name, tools, limitOf(context));
  spent += await tools.prepare(listLimit(context, spent));
  if (!known) await tools.admit(name); // the list may have said more
  // a retry carries the arguments that were checked
  if (round === 0) await checkArguments(tools, server.name, name, request.args, context.given);
  return spent;
}

/** One leg, with the retries that are safe. @throws TenonError */
async function send(
  context: CallContext,
  request: ToolCallRequest,
  wire: WireRequest,
  carried: Carried,
  round: number,
  { via }: CallState,
) {
  const { server, tools } = context;
  const { name } = request;
  /** When the time of the call began; opening a connection and waiting for one's turn come before. */
  let began = Date.now();
  const before = async () => {
    const spent = await admit(context, request, round);
    began = Date.now() - spent;
    return spent;
  };
  const again = async () => {
    await admit(context, request, round);
    return Date.now() - began;
  };
  // the key makes one task of several sendings
  const elsewhere = () => isRepeatable(tools.find(name));
  const safe = () => elsewhere() || tools.makesTasks(name);
  // the list says that the server has it: a replica that lacks it is older or younger than the others
  const lacks = (error: unknown) => tools.find(name) !== undefined && isUnknownTool(error, tools, name);
  const saysLacking = (answer: unknown) => saysUnknown(answer, name) && tools.find(name) !== undefined;
  const how = {
    safe,
    elsewhere,
    lacks,
    saysLacking,
    mayRepeat: repeatsOf(request.runtime, server.repeats),
    inTurn: true,
    via,
  };
  const answer = await sendRequest(context, wire, carried, { ...how, before })
    .catch(async (error: unknown) => {
      if (!mismatch(error)) throw error;
      // refused before it ran, because the tool's definition is unknown or old here
      tools.expire();
      const left = Math.max(1, limitOf(context) - (Date.now() - began));
      const renewed = tools.renew(left, wire.what);
      await withSignal(renewed, wire.signal, () => cancelled(server.name, wire.what, wire.signal.reason, false));
      return sendRequest(context, wire, carried, { ...how, before: again });
    })
    .catch((error: unknown) => {
      throw asUnknownTool(error, tools, server.name, name);
    });
  if (asksForInput(answer)) return answer;
  if (isTaskCreated(answer)) return created(server.name, wire.what, answer);
  return checkResult(server.name, request.name, answer);
}

/** What is worth keeping of the answer that a task begins. @throws ProtocolError `bad_answer` */
function created(server: string, what: string, answer: TaskCreated): TaskCreated {
  const { inputRequests: _later, ...task } = readTask(server, what, answer);
  return { resultType: "task", ...task };
}

/** Sends the call until it has an answer that is final, or is a task. */
async function begin(context: CallContext, request: ToolCallRequest, state: CallState) {
  const { server, tools, driver, elicitation, peers } = context;
  const { name, args, headers, meta, signal } = request;
  const { source } = state;
  const what = `tools/call ${name}`;
  const definition = () => tools.mirrored(name);
  const moreMeta = () => (tools.makesTasks(name) ? { [META.idempotencyKey]: state.key } : {});
  const params = { name, arguments: { ...args } };
  const wire: WireRequest = {
    method: "tools/call",
    what,
    tool: name,
    params,
    headers,
    meta,
    moreMeta,
    signal,
    source,
    definition,
  };
  const legOf = (round: number): Leg => ({ server: server.name, tool: name, args, round });
  const answer = driver?.answer?.bind(driver);
  return untilFinal<WireResult>({
    server: server.name,
    what,
    signal,
    source,
    peers,
    // a driver's legs may be replayed: nothing must be waited for between them
    visits: answer ? undefined : context.visits,
    answersInLeg: driver !== undefined && answer === undefined,
    expectHosts: server.config.expectHosts,
    send: (carried, round) => {
      const sendThis = async () => send(context, request, wire, await carried(), round, state);
      return driver ? driver.leg(sendThis, legOf(round)) : sendThis();
    },
    answer: async (questions, round) => {
      for (const question of Object.values(questions)) context.emit(context.events.onElicitation, question, source);
      if (answer) return checkAnswers(server.name, questions, await suspending(answer(questions, legOf(round))));
      return answerByHandler(elicitation, questions, { what, source, signal, suspends: NO_DRIVER });
    },
  });
}

/** The task that this call follows from before; what interceptors changed about its tool is looked at like any call's. */
async function resumed(context: CallContext, request: ToolCallRequest): Promise<{ final: WireResult; round: number }> {
  if (request.name !== "") await admit(context, request, 1);
  return { final: { resultType: "task", taskId: request.task ?? "" }, round: -1 };
}

/**
 * The innermost layer: checks the arguments, sends the call, answers its questions, follows its task and checks what comes back.
 * @throws TenonError
 */
export async function callOnWire(context: CallContext, request: ToolCallRequest): Promise<ToolResult> {
  const { server, tools, callId, driver, follow } = context;
  const { name, args, headers, meta, signal } = request;
  const tool = name === "" ? undefined : name;
  const sourceOf = (more: Pick<EventSource, "taskId">): EventSource => {
    const source = Object.freeze({ server: server.name, ...(tool && { tool }), callId, ...more });
    linkSource(source, request.runtime);
    return source;
  };
  const state: CallState = { source: sourceOf({}), via: { keeps: true }, key: randomUUID() };
  try {
    const begun = request.task === undefined ? begin(context, request, state) : resumed(context, request);
    let { final, round } = await begun;
    if (isTaskCreated(final)) {
      const { taskId } = final;
      if (context.starts) {
        const task = handleOf(context, tool, readTask(server.name, `tools/call ${name}`, final));
        return Object.freeze({ content: [], isError: false, meta: {}, raw: { content: [] }, task });
      }
      const target = { context, taskId, tool, headers, meta, source: sourceOf({ taskId }), via: state.via };
      final = await followTask({ ...target, signal, options: follow, driver, args, round: round + 1 });
    }
    const result = toToolResult(final as Exclude<WireResult, { resultType: string }>); // neither questions nor a task any more
    if (result.isError || tool === undefined) return result;
    // a leg may have been remembered by another process, which knew the definition
    await tools.prepare(listLimit(context)).catch(() => {});
    return await checkOutput(tools, server.name, name, result, state.via.member?.config);
  } catch (error) {
    if (error instanceof ExecutionError && error.code === "invalid_arguments") return problemResult(error);
    throw error;
  } finally {
    state.via.release?.();
  }
}
