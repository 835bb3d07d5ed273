import type { CallDriver, ElicitationAnswer, ElicitationRequest, Leg, WireResult } from "@tenon/client";
import { checkAnswer } from "@tenon/client/forms";
import {
  ConfigError,
  deserializeError,
  isRecord,
  ProtocolError,
  type SerializedError,
  serializeError,
  TenonError,
} from "@tenon/core";
import { digest } from "@tenon/core/internal";
import { ThreadLeaseLostError } from "../thread/lease.ts";
import { interruptTrace } from "../thread/run-trace.ts";
import { canPause, type Execution, pause, remember, rethrowParked } from "../tool/checkpoint.ts";
import { type PushedQuestion, replaying } from "./replay.ts";

/** What a run is interrupted with when a server asks the person something in the middle of a tool call. */
export interface ElicitationInterrupt {
  readonly type: "elicitation";
  /** Names this asking of this question; the answer must repeat it. */
  readonly elicitationId: string;
  readonly server: string;
  /** Wire name. */
  readonly tool: string;
  readonly toolCallId: string;
  /** 0 for the first questions of a call, then one more per answered round. */
  readonly round: number;
  /** Set when a task asks (tasks extension): its id. Some of its questions may be answered first, and the others later. */
  readonly task?: string;
  /** All questions of the round, by the server's keys. */
  readonly questions: Readonly<Record<string, ElicitationRequest>>;
  /** How often the call was begun anew because the server no longer knew of its earlier questions. */
  readonly restarted?: number;
  /** Why the question is asked again. */
  readonly error?: string;
  /** The trace it was asked in, which the answer's run goes on with. */
  readonly trace?: { readonly traceparent: string; readonly tracestate?: string };
}

/** What resumes an `ElicitationInterrupt`. */
export interface ElicitationResume {
  readonly elicitationId: string;
  readonly answers: Readonly<Record<string, ElicitationAnswer>>;
}

/** The tool call a driver works for. */
export interface DriverScope {
  readonly execution: Execution;
  /** Stable for one execution of one tool call, also across processes. */
  readonly callKey: string;
  readonly toolCallId: string;
  readonly server: string;
  readonly tool: string;
  readonly signal?: AbortSignal | undefined;
  /** Ends the call on a question of a legacy server, and repeats it with the answers. */
  readonly replay?: boolean;
  /** Whether questions interrupt the run; otherwise the client's handler answers them. */
  readonly interrupts: boolean;
}

type Boxed =
  | { ok: true; value: WireResult }
  | { ok: false; error: SerializedError }
  /** A legacy server asked inside the call. */
  | { ok: false; asked: PushedQuestion };

const MAX_RESTARTS = 3;
const REPLAY_GONE =
  "The call was ended to wait for an answer and can only be repeated with it: keep mcpTools' `legacyQuestions` " +
  "as it was while such a question is open.";
// our servers' (also for a state under a key they no longer have), and the SDK's; never "answered", "foreign" or "tampered"
const STATE_LOST = new Set(["expired", "invalid_request_state"]);

/** Why a server refused the state of an answer (-32602, `data.reason`), where that is why the leg failed. */
function refusalOf(error: unknown): string | undefined {
  if (!(error instanceof ProtocolError) || !isRecord(error.data) || error.data.code !== -32602) return undefined;
  const detail = error.data.data;
  return isRecord(detail) && typeof detail.reason === "string" ? detail.reason : undefined;
}

function answeredBefore(scope: DriverScope, cause: unknown): ProtocolError {
  return new ProtocolError(
    `The question of ${scope.tool} was answered before, with another answer, and that answer counts: the call may have taken ` +
      "effect. Do not call it again; look up what happened.",
    { code: "answered", server: scope.server, maybeExecuted: true, cause },
  );
}

function readAnswer(question: ElicitationRequest, given: unknown): ElicitationAnswer | { problem: string } {
  if (!isRecord(given)) return { problem: 'expected { action: "accept" | "decline" | "cancel", content? }' };
  const { action, content } = given;
  if (action === "decline" || action === "cancel") return { action };
  if (action !== "accept") {
    return { problem: `action is ${JSON.stringify(action)}, expected "accept", "decline" or "cancel"` };
  }
  if (question.mode === "url") return { action };
  const values = content ?? {};
  if (!isRecord(values)) return { problem: "content must be an object with one value per field" };
  const issues = checkAnswer(question.fields, values);
  if (issues.length > 0) return { problem: issues.map((issue) => `${issue.field}: ${issue.message}`).join("; ") };
  // checkAnswer has found every value to be of its field's kind
  return { action, content: values as Extract<ElicitationAnswer, { action: "accept" }>["content"] & object };
}

/** The answers in a resume value, or what is wrong with it in words for the person. */
function readElicitationResume<Key extends string>(
  value: unknown,
  elicitationId: string,
  questions: Readonly<Record<Key, ElicitationRequest>>,
  partly: boolean,
): { answers: Record<Key, ElicitationAnswer> } | { error: string } {
  if (!isRecord(value) || typeof value.elicitationId !== "string" || !isRecord(value.answers)) {
    return { error: "The answer was not understood: expected { elicitationId, answers: { [key]: answer } }." };
  }
  if (value.elicitationId !== elicitationId) {
    return { error: "The answer belonged to another question; please answer this one." };
  }
  const given = value.answers;
  const answers: Record<string, ElicitationAnswer> = {};
  const some = partly && Object.keys(questions).some((key) => Object.hasOwn(given, key));
  for (const [key, question] of Object.entries<ElicitationRequest>(questions)) {
    if (some && !Object.hasOwn(given, key)) continue;
    const read = readAnswer(question, Object.hasOwn(given, key) ? given[key] : undefined);
    if ("problem" in read) return { error: `The answer to "${question.message}" cannot be used: ${read.problem}.` };
    answers[key] = read;
  }
  return { answers };
}

/** Whether a call ended because its client was closed: then nothing is known yet of how its task ends. */
function wasClosed(error: unknown): boolean {
  return error instanceof TenonError && error.code === "closed";
}

/**
 * Makes one tool call survive a pause: each leg is sent once and recorded in the checkpoint, the beginning of a task like any other, so
 * that the same task is followed by whoever continues the thread; each round of questions becomes one interrupt. An answer that is malformed, invalid or meant for another question is asked for again, never thrown, since a
 * throw would be replayed on every later resume.
 */
export function durableDriver(scope: DriverScope): CallDriver {
  const { execution, toolCallId } = scope;
  const firstSends = new Map<string, () => Promise<WireResult>>();
  const replay = scope.replay ? replaying() : undefined;
  let asked = 0;
  let restarts = 0;
  let notice: string | undefined;

  async function once(send: () => Promise<WireResult>, leg: Leg): Promise<WireResult> {
    for (;;) {
      replay?.begin();
      // the call's id in the name keeps parallel calls of a tool apart where one task runs them all
      const name = `mcp:${leg.server}/${leg.tool}:${leg.round}:${toolCallId}`;
      const boxed = await remember(execution, name, async (): Promise<Boxed> => {
        try {
          return { ok: true, value: await send() };
        } catch (error) {
          const pushed = replay?.asked();
          if (pushed && !scope.signal?.aborted) return { ok: false, asked: pushed };
          // a cancelled run must send the leg again when it is continued; any other error is an outcome like a result
          if (scope.signal?.aborted || (leg.task !== undefined && wasClosed(error))) throw error;
          return { ok: false, error: serializeError(error) };
        }
      });
      if (boxed.ok) return boxed.value;
      if ("error" in boxed) throw deserializeError(boxed.error);
      // only a driver that replays records a question, and whoever continues the thread has the same options
      if (!replay) throw new ConfigError(REPLAY_GONE, { code: "legacy_question", server: scope.server });
      const { question } = await ask({ question: boxed.asked.question }, leg);
      replay.answered(boxed.asked, question);
    }
  }

  async function ask<Key extends string>(
    questions: Readonly<Record<Key, ElicitationRequest>>,
    leg: Leg,
  ): Promise<Record<Key, ElicitationAnswer>> {
    rethrowParked(execution, toolCallId);
    if (!canPause(execution)) {
      throw new ConfigError(
        `Tool "${scope.tool}" of server "${scope.server}" asks the person a question, but this run is not saved and cannot ` +
          "wait for the answer. Give the agent a checkpointer, or the client an elicitation handler.",
        { code: "no_checkpointer", server: scope.server },
      );
    }
    let error = notice;
    notice = undefined;
    for (;;) {
      // LangGraph may hand one resume value to several interrupts, or to a later question of the same task
      const elicitationId = `${scope.callKey}:${asked}`;
      asked += 1;
      const payload: ElicitationInterrupt = {
        type: "elicitation",
        elicitationId,
        server: leg.server,
        tool: leg.tool,
        toolCallId,
        round: leg.round,
        ...(leg.task !== undefined && { task: leg.task }),
        questions,
        ...(restarts > 0 && { restarted: restarts }),
        ...(error !== undefined && { error }),
        ...interruptTrace(),
      };
      const given = pause(execution, toolCallId, payload);
      const read = readElicitationResume(given, elicitationId, questions, leg.task !== undefined);
      if ("answers" in read) return read.answers;
      error = read.error;
    }
  }

  return {
    async leg(send, leg) {
      rethrowParked(execution, toolCallId);
      if (leg.task !== undefined) return once(send, leg);
      const key = digest([leg.server, leg.tool, leg.args]);
      if (leg.round === 0) firstSends.set(key, send);
      try {
        return await once(send, leg);
      } catch (error) {
        const reason = leg.round === 0 ? undefined : refusalOf(error);
        if (reason === "answered") throw answeredBefore(scope, error);
        const first = firstSends.get(key);
        if (reason === undefined || !STATE_LOST.has(reason) || !first || restarts >= MAX_RESTARTS) throw error;
        // begin again and ask again; the answer is never reused, since the question may have changed
        restarts += 1;
        notice = "The server no longer accepts an answer to the earlier question; please answer again.";
        return once(first, { ...leg, round: 0 });
      }
    },
    ...(scope.interrupts && { answer: ask }),
    // who took the thread over follows the same task
    leavesTask: (reason) => reason instanceof ThreadLeaseLostError,
    ...(replay && { pushed: replay.pushed }),
  };
}
