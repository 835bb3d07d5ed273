import { ExecutionError, ProtocolError } from "@tenon/core";
import type { ToolList } from "../catalog/catalog.ts";
import { isRepeatable } from "../catalog/hints.ts";
import { checkArguments, checkOutput } from "../catalog/tool-checks.ts";
import { asUnknownTool } from "../catalog/unknown-tool.ts";
import { cancelled, withSignal } from "../connection/deadline.ts";
import { checkAnswers } from "../question/questions.ts";
import type { Gate } from "../trust/gate.ts";
import type { CallDriver, Leg, ToolCallRequest, ToolResult, WireResult } from "../types/calls.ts";
import type { EventSource } from "../types/events.ts";
import { linkSource, repeatsOf, suspending } from "./marks.ts";
import { asksForInput, checkResult, problemResult, toToolResult } from "./results.ts";
import { answerByHandler, type Carried, untilFinal } from "./rounds.ts";
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
  const how = { safe: () => isRepeatable(tools.find(name)), mayRepeat: repeatsOf(request.runtime), inTurn: true };
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
  return asksForInput(answer) ? answer : checkResult(server.name, request.name, answer);
}

/**
 * The innermost layer: checks the arguments, sends the call, answers its questions and checks what comes back.
 * @throws TenonError
 */
export async function callOnWire(context: CallContext, request: ToolCallRequest): Promise<ToolResult> {
  const { server, tools, callId, driver, elicitation, peers } = context;
  const { name, args, headers, meta, signal } = request;
  const source: EventSource = Object.freeze({ server: server.name, tool: name, callId });
  linkSource(source, request.runtime);
  const what = `tools/call ${name}`;
  const definition = () => tools.mirrored(name);
  const params = { name, arguments: { ...args } };
  const wire: WireRequest = { method: "tools/call", what, params, headers, meta, signal, source, definition };
  const legOf = (round: number): Leg => ({ server: server.name, tool: name, args, round });
  try {
    const { final } = await untilFinal<WireResult>({
      server: server.name,
      what,
      signal,
      source,
      peers,
      // a driver's legs may be replayed: nothing must be waited for between them
      visits: driver ? undefined : context.visits,
      expectHosts: server.config.expectHosts,
      send: (carried, round) => {
        const sendThis = async () => send(context, request, wire, await carried(), round);
        return driver ? driver.leg(sendThis, legOf(round)) : sendThis();
      },
      answer: async (questions, round) => {
        for (const question of Object.values(questions)) context.emit(context.events.onElicitation, question, source);
        if (driver) {
          return checkAnswers(server.name, questions, await suspending(driver.answer(questions, legOf(round))));
        }
        const suspends = "this call brought no driver";
        return answerByHandler(elicitation, questions, { what, source, signal, suspends });
      },
    });
    const result = toToolResult(final as Exclude<WireResult, { resultType: "input_required" }>); // untilFinal ends with no question
    if (result.isError) return result;
    // a leg may have been remembered by another process, which knew the definition
    await tools.prepare(listLimit(context)).catch(() => {});
    return await checkOutput(tools, server.name, name, result);
  } catch (error) {
    if (error instanceof ExecutionError && error.code === "invalid_arguments") return problemResult(error);
    throw error;
  }
}
