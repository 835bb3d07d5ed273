import { type BaseMessageLike, HumanMessage, isBaseMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { ConfigError, isRecord, TenonError } from "@tenon/core";
import {
  type Answer,
  type Question,
  questionsOf,
  readThread,
  resumeValue,
  type ThreadState,
} from "../question/open-questions.ts";
import { rootOf } from "../tool/failures.ts";
import { messagesOf } from "./events.ts";
import type { EndState, StreamAnswer, StreamInput } from "./stream.ts";
import { withoutRedaction } from "./stream-shape.ts";
import { continueCut, type Exclusive, replyOf, runGraph, type Thread, wasCut } from "./stream-thread.ts";

/** One run of a thread. */
export interface RunWork {
  readonly input: StreamInput;
  /** Further keys of the state, sent together with a message. */
  readonly state?: Readonly<Record<string, unknown>> | undefined;
  readonly signal: AbortSignal;
  readonly exclusive: Exclusive;
  /** A question as its reader saw it, without secrets. */
  readonly shown: (question: Question) => Question;
}

/** What a run came to. */
export interface Outcome {
  readonly state: EndState;
  readonly questions: readonly Question[];
  readonly reply?: string;
  readonly error?: unknown;
  /** Ids of answers that were dropped, since no such question is open. */
  readonly dropped: readonly string[];
  /** The message was not sent, since questions are open. */
  readonly unsent: boolean;
  /** The thread as it is now, unless the run was aborted or it cannot be read. */
  readonly thread?: ThreadState;
}

/** Whether an answer is meant for the asking that is open now, as far as it says. */
function fits(question: Question, answer: StreamAnswer): boolean {
  return question.kind === "approval"
    ? answer.approvalId === undefined || answer.approvalId === question.approvalId
    : answer.elicitationId === undefined || answer.elicitationId === question.elicitationId;
}

/** Whether the thread has this very message already. */
function isThere(message: BaseMessageLike, state: ThreadState): boolean {
  if (!isBaseMessage(message) || message.id === undefined) return false;
  const same = messagesOf(state.values).find(({ id }) => id === message.id);
  return same !== undefined && JSON.stringify(same.content) === JSON.stringify(message.content); // else it is to be changed
}

/** The answer with the original values in the places its author saw redacted. */
function restored(question: Question, shown: Question, answer: Answer): Answer {
  if (question.kind !== "approval" || shown.kind !== "approval" || !("decisions" in answer)) return answer;
  if (!Array.isArray(answer.decisions)) return answer;
  const decisions = answer.decisions.map((decision, i) => {
    if (decision?.type !== "edit" || !isRecord(decision.editedAction?.args)) return decision;
    const args = withoutRedaction(question.actions[i]?.args, shown.actions[i]?.args, decision.editedAction.args);
    // objects in, object out
    return { ...decision, editedAction: { ...decision.editedAction, args: args as Record<string, unknown> } };
  });
  return { ...answer, decisions };
}

/**
 * Runs what is due on a thread: the answers that were given, else the rest of a run that was cut and then the input.
 * Errors of the run are in the outcome, together with the state they left.
 */
export async function runThread(thread: Thread, work: RunWork): Promise<Outcome> {
  const { input, signal, exclusive } = work;
  const { agent, emit } = thread;
  const read = () => readThread(agent, thread.options.threadId);
  let dropped: readonly string[] = [];
  let unsent = false;

  async function answer(answers: readonly StreamAnswer[], held: AbortSignal): Promise<void> {
    const state = await read();
    const open = questionsOf(state);
    const values: Record<string, unknown> = {};
    const gone: string[] = [];
    for (const given of answers) {
      const question = open.find(({ id }) => id === given.id);
      if (!question || !fits(question, given)) gone.push(given.id);
      else values[question.id] = resumeValue(question, restored(question, work.shown(question), given));
    }
    dropped = gone;
    if (Object.keys(values).length > 0) await runGraph(thread, new Command({ resume: values }), state, held);
  }

  async function begin(held: AbortSignal): Promise<void> {
    let state = await read();
    while (wasCut(state)) state = await continueCut(thread, state, held);
    if (input === undefined || (typeof input === "object" && "resume" in input)) return;
    unsent = questionsOf(state).length > 0;
    if (unsent) return;
    const messages = typeof input === "string" ? [new HumanMessage(input)] : input.messages;
    // what was continued above may be what an earlier sending of the same message began
    if (messages.length > 0 && messages.every((message) => isThere(message, state))) return;
    await runGraph(thread, { ...work.state, messages }, state, held);
  }

  let error: unknown;
  try {
    signal.throwIfAborted();
    const resume = typeof input === "object" && "resume" in input ? input.resume : undefined;
    await exclusive((held) => (resume ? answer(resume, held) : begin(held)));
  } catch (thrown) {
    error = rootOf(thrown) ?? new TenonError("The run threw nothing at all", { code: "unexpected" });
  }
  if (signal.aborted) return { state: "aborted", questions: [], error, dropped, unsent };
  const state = await read().catch((cause: unknown) => {
    error ??= cause;
    return undefined;
  });
  const questions = state ? questionsOf(state) : [];
  for (const question of questions) emit({ type: "question", question });
  const outcome = { questions, error, dropped, unsent, ...(state && { thread: state }) };
  if (questions.length > 0) return { ...outcome, state: "waiting" };
  if (error !== undefined || dropped.length > 0 || unsent) return { ...outcome, state: "failed" };
  return { ...outcome, state: "done", reply: replyOf(messagesOf(state?.values)) };
}

/** Why a run did less than it was asked to, if it did. */
export function shortfallOf({ dropped, unsent }: Outcome, threadId: string): ConfigError | undefined {
  if (unsent) {
    return new ConfigError(
      `The message was not sent, since thread "${threadId}" waits for an answer. Answer with { resume: [ … ] } first.`,
      { code: "questions_open" },
    );
  }
  if (dropped.length === 0) return undefined;
  return new ConfigError(
    `${dropped.length} of the answers ${dropped.length === 1 ? "was" : "were"} dropped: no such question is open on thread ` +
      `"${threadId}" (${dropped.join(", ").slice(0, 200)}). It was answered elsewhere, or asked again.`,
    { code: "superseded" },
  );
}
