import { type CallToolRequest, LOG_LEVEL_META_KEY, type LoggingLevel, type Tool } from "@modelcontextprotocol/client";
import { ConfigError, ProtocolError } from "@tenon/core";
import type { ToolList } from "./catalog.ts";
import type { Connection } from "./connection/connection.ts";
import { cancelled, startDeadline, withSignal } from "./connection/deadline.ts";
import type { Exchange } from "./connection/exchange.ts";
import type { Server } from "./connection/server.ts";
import { pause } from "./connection/time.ts";
import { type Emit, progressEvent } from "./events.ts";
import { declaresHeaders } from "./param-headers.ts";
import { askHandler, checkAnswers, parseQuestions } from "./questions.ts";
import { asksForInput, checkResult, toToolResult } from "./results.ts";
import type {
  CallOptions,
  ClientEvents,
  ElicitationHandler,
  ElicitationRequest,
  EventSource,
  Leg,
  ToolCallRequest,
  ToolResult,
  WireResult,
} from "./types.ts";

const IDLE_MS = 60_000;
const TOTAL_MS = 600_000;
const MAX_ROUNDS = 10;
const STATE_ONLY_DELAY_MS = 100;
/** JSON-RPC code of the revision: the headers do not repeat the parameters the server declares for them. */
const HEADER_MISMATCH = -32_020;

/** What a call needs besides its request. */
export interface CallContext {
  readonly server: Server;
  readonly tools: ToolList;
  readonly emit: Emit;
  readonly events: ClientEvents;
  readonly elicitation: ElicitationHandler | "interrupt" | undefined;
  readonly logLevel: LoggingLevel;
  readonly options: Pick<CallOptions, "timeoutMs" | "totalTimeoutMs" | "onProgress" | "onLog" | "driver">;
  readonly callId: string;
}

/** What a retry carries: the answers by key and the server's own state, returned as it came. */
interface Round {
  readonly inputResponses?: Record<string, unknown>;
  readonly requestState?: string;
}

/** The definition the SDK takes parameter headers from; an unknown tool has none until the server complains. */
function definitionOf(tools: ToolList, name: string): Tool {
  const known = tools.known.find((tool) => tool.wireName === name);
  const inputSchema = known && declaresHeaders(known.inputSchema) ? known.inputSchema : { type: "object" };
  return { name, inputSchema } as Tool; // the catalog takes only schemas of type object
}

async function sendLeg(
  context: CallContext,
  request: ToolCallRequest,
  source: EventSource,
  round: Round,
  connection: Connection,
): Promise<WireResult> {
  const { server, tools, emit, events, logLevel, options } = context;
  const wantsLogs = events.onLog !== undefined || options.onLog !== undefined;
  if (wantsLogs) await connection.askForLogs(logLevel);
  const deadline = startDeadline({
    server: server.name,
    what: `tools/call ${request.name}`,
    idleMs: options.timeoutMs ?? IDLE_MS,
    totalMs: options.totalTimeoutMs ?? TOTAL_MS,
    signal: request.signal,
  });
  const exchange: Exchange = {
    call: { source, deadline, onLog: options.onLog },
    headers: request.headers,
    rawMethod: "tools/call",
    onProgress: (progress) => {
      deadline.touch();
      const event = progressEvent(progress);
      emit(events.onProgress, event, source);
      emit(options.onProgress, event, source);
    },
  };
  const level = wantsLogs && connection.era === "modern" ? { [LOG_LEVEL_META_KEY]: logLevel } : {};
  const params = {
    name: request.name,
    arguments: { ...request.args },
    _meta: { ...level, ...request.meta },
    ...round,
  } as CallToolRequest["params"]; // the SDK sends what a retry carries but its type for a first sending lacks it
  try {
    const answer: WireResult = await connection.exchange(exchange, ({ timeout }) =>
      connection.sdk.callTool(params, {
        timeout,
        signal: deadline.signal,
        headers: { ...request.headers },
        allowInputRequired: true,
        toolDefinition: definitionOf(tools, request.name),
        // only to have the SDK ask for progress; it is taken from the exchange
        onprogress: () => {},
      }),
    );
    return asksForInput(answer) ? answer : checkResult(server.name, request.name, exchange.raw ?? answer);
  } catch (error) {
    throw deadline.error ?? error;
  } finally {
    deadline.end();
  }
}

function mismatch(error: unknown): boolean {
  if (!(error instanceof ProtocolError) || typeof error.data !== "object" || error.data === null) return false;
  return "code" in error.data && error.data.code === HEADER_MISMATCH;
}

/** One leg, with the retries that are safe. @throws TenonError */
async function send(
  context: CallContext,
  request: ToolCallRequest,
  source: EventSource,
  round: Round,
): Promise<WireResult> {
  const { server, tools } = context;
  const { signal } = request;
  const what = `tools/call ${request.name}`;
  let sent = false;
  const run = () =>
    server.use(what, (connection) => {
      if (signal.aborted) throw cancelled(server.name, what, signal.reason, sent);
      sent = true;
      return sendLeg(context, request, source, round, connection);
    });
  // the signal must also end the wait for a connection
  const bounded = () => withSignal(run(), signal, () => cancelled(server.name, what, signal.reason, sent));
  try {
    return await bounded();
  } catch (error) {
    if (!mismatch(error)) throw error;
    // refused before it ran, because the tool's definition is unknown or old here
    tools.expire();
    await tools.get();
    return bounded();
  }
}

async function answer(
  context: CallContext,
  request: ToolCallRequest,
  source: EventSource,
  questions: Record<string, ElicitationRequest>,
  leg: Leg,
): Promise<Record<string, unknown>> {
  const { elicitation, options, server } = context;
  if (options.driver) return checkAnswers(server.name, questions, await options.driver.answer(questions, leg));
  if (elicitation === undefined || elicitation === "interrupt") {
    const why = elicitation
      ? 'elicitation is "interrupt" and this call brought no driver'
      : "no elicitation handler is set";
    throw new ConfigError(`server "${server.name}" asks a question in tool "${request.name}", but ${why}`, {
      code: "no_answerer",
      server: server.name,
    });
  }
  const onAbort = () => cancelled(server.name, `tools/call ${request.name}`, request.signal.reason, true);
  const answers: Record<string, unknown> = {};
  // one after the other: a person answers one form at a time
  for (const [key, question] of Object.entries(questions)) {
    answers[key] = await askHandler(elicitation, question, source, request.signal, onAbort);
  }
  return answers;
}

/**
 * The innermost layer: sends the call and answers its questions, round by round, until the result is final (revision
 * 2026-07-28, multi-round-trip requests).
 * @throws TenonError
 */
export async function callOnWire(context: CallContext, request: ToolCallRequest): Promise<ToolResult> {
  const { server, callId, options } = context;
  const source: EventSource = Object.freeze({ server: server.name, tool: request.name, callId });
  let carried: Round = {};
  for (let round = 0; round <= MAX_ROUNDS; round++) {
    const leg: Leg = { server: server.name, tool: request.name, args: request.args, round };
    const current = carried;
    const sendThis = () => send(context, request, source, current);
    const result = await (options.driver ? options.driver.leg(sendThis, leg) : sendThis());
    if (!asksForInput(result)) return toToolResult(result);
    const state = result.requestState === undefined ? {} : { requestState: result.requestState };
    const questions = parseQuestions(server.name, result.inputRequests ?? {}, server.config.expectHosts);
    if (Object.keys(questions).length === 0) {
      await withSignal(pause(STATE_ONLY_DELAY_MS), request.signal, () =>
        cancelled(server.name, `tools/call ${request.name}`, request.signal.reason, true),
      );
      carried = state;
    } else {
      carried = { inputResponses: await answer(context, request, source, questions, leg), ...state };
    }
  }
  throw new ProtocolError(
    `tool "${request.name}" of server "${server.name}" still asks after ${MAX_ROUNDS} rounds of answers; it was given up`,
    { code: "too_many_rounds", server: server.name, maybeExecuted: true },
  );
}
