import { HumanMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { ConfigError, isRecord, TenonError } from "@tenon/core";
import { messagesOf, type RunEvent } from "./events.ts";
import {
  type Answer,
  type Question,
  questionsOf,
  type RunnableAgent,
  readThread,
  resumeValue,
} from "./open-questions.ts";
import type { EndState, StreamAnswer, StreamInput, StreamOptions } from "./stream.ts";
import { eventReader } from "./stream-reader.ts";
import { withoutRedaction } from "./stream-shape.ts";
import { continueCut, exclusiveOf, replyOf, runGraph, type Thread, wasCut } from "./stream-thread.ts";

/** One run of a thread, and where its events go. */
export interface RunWork {
  readonly input: StreamInput;
  readonly options: StreamOptions;
  readonly signal: AbortSignal;
  readonly emit: (event: RunEvent) => void;
  /** A question as its reader saw it, without secrets. */
  readonly shown: (question: Question) => Question;
}

/** What a run came to. */
export interface Outcome {
  readonly state: EndState;
  readonly questions: readonly Question[];
  readonly reply?: string;
  readonly error?: unknown;
}

/** Whether an answer is meant for the asking that is open now, as far as it says. */
function fits(question: Question, answer: StreamAnswer): boolean {
  return question.kind === "approval"
    ? answer.approvalId === undefined || answer.approvalId === question.approvalId
    : answer.elicitationId === undefined || answer.elicitationId === question.elicitationId;
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
export async function runThread(agent: RunnableAgent, work: RunWork): Promise<Outcome> {
  const { input, options, signal, emit } = work;
  const { threadId } = options;
  const exclusive = exclusiveOf(options, signal, "streamRun");
  const thread: Thread = { agent, options, events: eventReader(agent), emit };
  const read = () => readThread(agent, threadId);

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
    if (Object.keys(values).length > 0) await runGraph(thread, new Command({ resume: values }), state, held);
    if (gone.length === 0) return;
    throw new ConfigError(
      `${gone.length} of ${answers.length} answers were dropped: no such question is open on thread "${threadId}" ` +
        `(${gone.join(", ").slice(0, 200)}). It was answered elsewhere, or asked again.`,
      { code: "superseded" },
    );
  }

  async function begin(held: AbortSignal): Promise<void> {
    let state = await read();
    if (wasCut(state)) state = await continueCut(thread, state, held);
    if (input === undefined || (typeof input === "object" && "resume" in input)) return;
    if (questionsOf(state).length > 0) {
      throw new ConfigError(
        `The message was not sent, since thread "${threadId}" waits for an answer. Answer with { resume: [ … ] } first.`,
        { code: "questions_open" },
      );
    }
    const messages = typeof input === "string" ? [new HumanMessage(input)] : input.messages;
    await runGraph(thread, { ...options.state, messages }, state, held);
  }

  let error: unknown;
  try {
    signal.throwIfAborted();
    const resume = typeof input === "object" && "resume" in input ? input.resume : undefined;
    await exclusive((held) => (resume ? answer(resume, held) : begin(held)));
  } catch (thrown) {
    error = thrown ?? new TenonError("The run threw nothing at all", { code: "unexpected" });
  }
  if (signal.aborted) return { state: "aborted", questions: [] };
  const state = await read().catch((cause: unknown) => {
    error ??= cause;
    return undefined;
  });
  const questions = state ? questionsOf(state) : [];
  for (const question of questions) emit({ type: "question", question });
  if (questions.length > 0) return { state: "waiting", questions, error };
  if (error !== undefined) return { state: "failed", questions, error };
  return { state: "done", questions, reply: replyOf(messagesOf(state?.values)) };
}
