import {
  type CallToolRequest,
  type InputRequiredResult,
  LOG_LEVEL_META_KEY,
  type LoggingLevel,
  type Tool,
} from "@modelcontextprotocol/client";
import { type ContentOf, jsonSize } from "@tenon/core/internal";
import type { Connection } from "../connection/connection.ts";
import { cancelled, startDeadline, withSignal } from "../connection/deadline.ts";
import type { Attempted, CallRoute, Endpoint, Via } from "../connection/endpoint.ts";
import { ANY_RESULT, type Exchange } from "../connection/exchange.ts";
import { bounded } from "../connection/time.ts";
import { metaUnder } from "../contract/accepted.ts";
import { type Emit, progressEvent } from "../events.ts";
import type { PeerAnswers } from "../question/peer-requests.ts";
import { refusalAsQuestions, type Visits } from "../question/url-refusals.ts";
import type { CallDriver, ReadOptions } from "../types/calls.ts";
import type { ClientEvents, EventSource } from "../types/events.ts";
import type { ElicitationHandler } from "../types/questions.ts";
import { repeatsOf } from "./marks.ts";
import { asksForInput } from "./results.ts";
import type { Carried } from "./rounds.ts";
import { tooLarge } from "./size.ts";
import { noteReplica } from "./trace.ts";

/** Milliseconds without an answer or progress, and altogether, unless a call says otherwise. */
const IDLE_MS = 60_000;
const TOTAL_MS = 600_000;

/** Milliseconds one request may take until something arrives. */
export function limitOf({ options }: Pick<WireContext, "options">): number {
  return Math.min(options.timeoutMs ?? IDLE_MS, options.totalTimeoutMs ?? TOTAL_MS);
}

/** What a request needs from its client besides itself. */
export interface WireContext {
  readonly server: Endpoint;
  /** Which replica its requests belong to; left out for what belongs to no conversation. */
  readonly route?: CallRoute | undefined;
  readonly emit: Emit;
  readonly events: ClientEvents;
  readonly elicitation: ElicitationHandler | "interrupt" | undefined;
  readonly peers: PeerAnswers;
  readonly visits: Visits;
  readonly logLevel: LoggingLevel;
  readonly maxResultBytes: number;
  /** How arguments and results become attributes of spans, where they may. */
  readonly content: ContentOf | undefined;
  readonly options: Pick<ReadOptions, "timeoutMs" | "totalTimeoutMs" | "onProgress" | "onLog">;
  readonly callId: string;
  readonly driver?: CallDriver | undefined;
  /** Fields of the context that the server's configuration gives for this call. */
  readonly contextFields?: Readonly<Record<string, unknown>> | undefined;
}

/** The requests about a task. */
export type TaskMethod = "tasks/get" | "tasks/update" | "tasks/cancel";

/** A request whose answer may be a question. */
export interface WireRequest {
  readonly method: "tools/call" | "prompts/get" | "resources/read" | "contexts/get" | TaskMethod;
  /** In words, for example `tools/call refund`. */
  readonly what: string;
  /** Wire name of the tool, where it is a call of one. */
  readonly tool?: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly meta: Readonly<Record<string, unknown>>;
  /** Further `_meta`, asked for when the request goes out; what `meta` says counts more. */
  readonly moreMeta?: () => Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly source: EventSource;
  /** Where the SDK takes a tool's parameter headers from; none for a tool without. */
  readonly definition?: () => Tool | undefined;
}

/** The answer as it came, or questions. */
export type WireAnswer = Record<string, unknown> | InputRequiredResult;

async function sendOn(
  connection: Connection,
  context: WireContext,
  request: WireRequest,
  carried: Carried,
  spent: number,
  others: boolean,
  mayRepeat: () => boolean,
): Promise<WireAnswer> {
  const { server, emit, events, logLevel, maxResultBytes, options } = context;
  const { method, source, headers } = request;
  const meta = metaUnder(connection, method, request.meta, context.contextFields);
  // a task has neither logs nor progress beside its answers
  const aboutTask = method.startsWith("tasks/");
  const wantsLogs = !aboutTask && (events.onLog !== undefined || options.onLog !== undefined);
  const began = Date.now();
  const left = () => Math.max(1, (options.timeoutMs ?? IDLE_MS) - spent - (Date.now() - began));
  const stream = connection.streamPending;
  if (stream) await bounded(stream, left());
  if (wantsLogs) await bounded(connection.askForLogs(logLevel), left());
  const deadline = startDeadline({
    server: server.name,
    what: request.what,
    idleMs: options.timeoutMs ?? IDLE_MS,
    totalMs: options.totalTimeoutMs ?? TOTAL_MS,
    spentMs: spent + (Date.now() - began),
    signal: request.signal,
  });
  const exchange: Exchange = {
    call: { source, deadline, onLog: options.onLog, mayRepeat, impatient: others, pushed: context.driver?.pushed },
    headers,
    rawMethod: method,
    ...((method === "tools/call" || aboutTask) && { mayBeTask: connection.era === "modern" }),
    onProgress: (progress) => {
      deadline.touch();
      const event = progressEvent(progress);
      emit(events.onProgress, event, source);
      emit(options.onProgress, event, source);
    },
  };
  const level = wantsLogs && connection.era === "modern" ? { [LOG_LEVEL_META_KEY]: logLevel } : {};
  const params = { ...request.params, _meta: { ...level, ...request.moreMeta?.(), ...meta }, ...carried };
  try {
    const answer: unknown = await connection.exchange(exchange, ({ timeout }) => {
      const how = {
        timeout,
        signal: deadline.signal,
        headers: { ...headers },
        allowInputRequired: true as const,
        // only to have the SDK ask for progress; it is taken from the exchange
        ...(!aboutTask && { onprogress: () => {} }),
      };
      const toolDefinition = request.definition?.();
      if (!toolDefinition) return connection.sdk.request({ method, params }, ANY_RESULT, how);
      // the SDK sends what a retry carries but its type for a first sending lacks it
      return connection.sdk.callTool(params as unknown as CallToolRequest["params"], { ...how, toolDefinition });
    });
    const given = exchange.raw ?? (answer as Record<string, unknown>); // a result is an object
    if (jsonSize(given, maxResultBytes) > maxResultBytes) throw tooLarge(server.name, request.what, maxResultBytes);
    return asksForInput(answer) ? answer : given;
  } catch (error) {
    throw deadline.error ?? error;
  } finally {
    deadline.end();
  }
}

/** How a request is sent. */
export interface Sending {
  /**
   * Runs first, under the caller's signal; what it throws is thrown, and nothing is sent. Gives the milliseconds it took
   * from the request's time.
   */
  readonly before?: () => Promise<number>;
  /** Whether the request only reads, or may be repeated; asked after `before`. */
  readonly safe?: () => boolean;
  /** The same at another replica. Default: as `safe`. */
  readonly elsewhere?: () => boolean;
  /** Whether an error says that one replica lacks what others may have; it surely did not run there. */
  readonly lacks?: (error: unknown) => boolean;
  /** The same for an answer. */
  readonly saysLacking?: (answer: unknown) => boolean;
  /** Counts for the server's `concurrency`. */
  readonly inTurn?: boolean;
  /** Whether it may be sent again; once by default. */
  readonly mayRepeat?: () => boolean;
  /** The member of a pool that it is sent to, or was sent to: what one process of a pool began, only that one may know. */
  readonly via?: Via;
}

const ALONE: Attempted = { lostMs: 0, others: false };

/**
 * Sends a request, and once more at most where that is safe.
 * @throws TenonError
 */
export async function sendRequest(
  context: WireContext,
  request: WireRequest,
  carried: Carried,
  {
    before,
    safe = () => true,
    elsewhere = safe,
    lacks,
    saysLacking,
    inTurn = false,
    mayRepeat,
    via = {},
  }: Sending = {},
): Promise<WireAnswer> {
  const { server, route = {}, contextFields } = context;
  const { method, signal, what, headers, meta, tool } = request;
  const again = mayRepeat ?? repeatsOf(request.source, server.repeats);
  let sent = false;
  let spent = 0;
  const attempt = (connection: Connection, { lostMs, others }: Attempted = ALONE) => {
    if (signal.aborted) throw cancelled(server.name, what, signal.reason, sent);
    sent = true;
    noteReplica(server, connection);
    return sendOn(connection, context, request, carried, spent + lostMs, others, again);
  };
  const run = async () => {
    spent = (await before?.()) ?? 0;
    const how = {
      safe: safe(),
      elsewhere: elsewhere(),
      mayRepeat: again,
      lacks,
      saysLacking,
      inTurn,
      via,
      route,
      signal,
    };
    return server.send({ method, what, tool, headers, meta, contextFields, ...how }, attempt);
  };
  // the signal must also end the wait for a connection
  const asked = run().catch((error: unknown) => {
    const questions = refusalAsQuestions(error);
    if (questions) return questions;
    throw error;
  });
  return withSignal(asked, signal, () => cancelled(server.name, what, signal.reason, sent));
}
