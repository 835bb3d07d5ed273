import { setMaxListeners } from "node:events";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
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
  type ThreadState,
} from "./open-questions.ts";
import type { EndState, StreamAnswer, StreamInput, StreamOptions } from "./stream.ts";
import { eventReader, STREAM_MODES } from "./stream-reader.ts";
import { withoutRedaction } from "./stream-shape.ts";

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

function replyOf(messages: readonly BaseMessage[]): string {
  const last = messages.at(-1);
  return ToolMessage.isInstance(last) || AIMessage.isInstance(last) ? last.text : "";
}

/** Whether the thread stopped in the middle of a run: steps are due, and none of them waits for a person. */
function wasCut(state: ThreadState): boolean {
  return state.next.length > 0 && questionsOf(state).length === 0;
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
  return { decisions };
}

/**
 * Runs what is due on a thread: the answers that were given, else the rest of a run that was cut and then the input.
 * Errors of the run are in the outcome, together with the state they left.
 */
export async function runThread(agent: RunnableAgent, work: RunWork): Promise<Outcome> {
  const { input, options, signal, emit } = work;
  const { threadId } = options;
  const exclusive = options.exclusive ?? ((inside) => inside());
  const events = eventReader(agent);
  const read = () => readThread(agent, threadId);

  async function run(value: unknown, state: ThreadState): Promise<void> {
    signal.throwIfAborted();
    events.begin(state.values);
    // createAgent spreads the saved state into an input as soon as it has middleware, which doubles every channel with a
    // reducer; its graph does not, but only the agent fills in middleware defaults, which a new thread needs
    const runner = isRecord(state.values) && Object.keys(state.values).length > 0 ? (agent.graph ?? agent) : agent;
    // LangGraph never takes its listeners off a signal again
    const own = new AbortController();
    setMaxListeners(0, own.signal);
    const stop = (): void => own.abort(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    try {
      const stream = await runner.stream(value, {
        configurable: { thread_id: threadId },
        streamMode: [...STREAM_MODES],
        signal: own.signal,
        ...(options.context !== undefined && { context: options.context }),
        ...(options.recursionLimit !== undefined && { recursionLimit: options.recursionLimit }),
      });
      for await (const chunk of stream) {
        if (!Array.isArray(chunk)) continue;
        for (const event of events.read(String(chunk[0]), chunk[1])) emit(event);
      }
      signal.throwIfAborted();
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  async function answer(answers: readonly StreamAnswer[]): Promise<void> {
    const state = await read();
    const open = questionsOf(state);
    const values: Record<string, unknown> = {};
    const gone: string[] = [];
    for (const given of answers) {
      const question = open.find(({ id }) => id === given.id);
      if (!question || !fits(question, given)) gone.push(given.id);
      else values[question.id] = resumeValue(question, restored(question, work.shown(question), given));
    }
    if (Object.keys(values).length > 0) await run(new Command({ resume: values }), state);
    if (gone.length === 0) return;
    throw new ConfigError(
      `${gone.length} of ${answers.length} answers were dropped: no such question is open on thread "${threadId}" ` +
        `(${gone.join(", ").slice(0, 200)}). It was answered elsewhere, or asked again.`,
      { code: "superseded" },
    );
  }

  async function begin(): Promise<void> {
    let state = await read();
    if (wasCut(state)) {
      await run(null, state);
      const after = await read();
      if (wasCut(after) && after.config.configurable?.checkpoint_id === state.config.configurable?.checkpoint_id) {
        throw new TenonError(`Thread "${threadId}" has steps left (${after.next.join(", ")}) that do not run`, {
          code: "stuck",
        });
      }
      state = after;
    }
    if (input === undefined || (typeof input === "object" && "resume" in input)) return;
    if (questionsOf(state).length > 0) {
      throw new ConfigError(
        `The message was not sent, since thread "${threadId}" waits for an answer. Answer with { resume: [ … ] } first.`,
        { code: "questions_open" },
      );
    }
    const messages = typeof input === "string" ? [new HumanMessage(input)] : input.messages;
    await run({ ...options.state, messages }, state);
  }

  let error: unknown;
  try {
    signal.throwIfAborted();
    await exclusive(() => (typeof input === "object" && "resume" in input ? answer(input.resume) : begin()));
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
