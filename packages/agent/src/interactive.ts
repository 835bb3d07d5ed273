import { type BaseMessage, type BaseMessageLike, HumanMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { ConfigError, checkOptions } from "@tenon/core";
import { messagesOf, type RunEvent } from "./events.ts";
import {
  type Answer,
  type Question,
  questionsOf,
  type RunnableAgent,
  readThread,
  resumeValue,
} from "./open-questions.ts";
import { eventReader } from "./stream-reader.ts";
import {
  continueCut,
  exclusiveOf,
  replyOf,
  runGraph,
  type Thread,
  type ThreadOptions,
  wasCut,
} from "./stream-thread.ts";

/** How `runInteractive` reaches the person and the thread. */
export interface InteractiveOptions extends ThreadOptions {
  /** Further keys of the state, sent together with the input. */
  readonly state?: Readonly<Record<string, unknown>>;
  /** Asks the person. Undefined leaves the question open and ends with status `"paused"`. */
  readonly ask: (question: Question, signal: AbortSignal) => Promise<Answer | undefined> | Answer | undefined;
  readonly onEvent?: (event: RunEvent) => void;
  /** Cancels the run; the thread can be continued later. */
  readonly signal?: AbortSignal;
}

/** What a conversation came to. */
export interface InteractiveResult {
  /** `"paused"`: a question stays open; the next call asks it again. */
  readonly status: "done" | "paused";
  /** The open questions; empty when done. */
  readonly questions: readonly Question[];
  /** The thread's state. */
  readonly values: Readonly<Record<string, unknown>>;
  /** The messages that came with this call, the input included. */
  readonly messages: readonly BaseMessage[];
  /** What to show the person: the model's last words, or the last tool's text when a tool ended the run. */
  readonly reply: string;
}

/** What a person says: text, messages, or undefined to only continue what is open. */
export type InteractiveInput = string | { readonly messages: readonly BaseMessageLike[] } | undefined;

const OPTIONS = [
  "threadId",
  "context",
  "state",
  "ask",
  "onEvent",
  "signal",
  "leases",
  "lease",
  "exclusive",
  "recursionLimit",
];

/**
 * Drives an agent until it has nothing left to do or a question stays open: asks what is open on the thread, continues a run
 * that was cut, then sends the input, and so on. Nothing is kept in memory between calls, so a question that was left open, or
 * a process that died, is picked up by the next call, also in another process.
 *
 * @throws ConfigError `code: "no_checkpointer"`, `"unknown_interrupt"` or `"answer_kind"`; ThreadBusyError and ThreadLeaseLost
 *   with `leases`; errors of the run as they are
 * @example
 * const { reply } = await runInteractive(agent, "Refund order 1234", {
 *   threadId: "t1",
 *   ask: async (question) => (question.kind === "approval" ? { decisions: [{ type: "approve" }] } : undefined),
 * });
 */
export async function runInteractive(
  agent: RunnableAgent,
  input: InteractiveInput,
  options: InteractiveOptions,
): Promise<InteractiveResult> {
  checkOptions(options, OPTIONS, "runInteractive(agent, input, options)");
  if (typeof options.threadId !== "string" || options.threadId === "") {
    throw new ConfigError("runInteractive needs options.threadId, the name of the conversation", { code: "no_thread" });
  }
  const { threadId, ask } = options;
  const signal = options.signal ?? new AbortController().signal;
  const exclusive = exclusiveOf(options, signal, "runInteractive");
  const emit = options.onEvent ?? (() => {});
  const thread: Thread = { agent, options, events: eventReader(agent), emit };
  const read = () => readThread(agent, threadId);

  async function resume(given: ReadonlyArray<{ question: Question; answer: Answer }>): Promise<void> {
    const values = given.map(({ question, answer }) => ({ question, value: resumeValue(question, answer) }));
    await exclusive(async (held) => {
      const state = await read();
      const open = new Set(questionsOf(state).map((question) => question.id));
      const gone = values.filter(({ question }) => !open.has(question.id));
      if (gone.length > 0) emit({ type: "superseded", questions: gone.map(({ question }) => question) });
      const valid = values.filter(({ question }) => open.has(question.id));
      if (valid.length === 0) return;
      const map = Object.fromEntries(valid.map(({ question, value }) => [question.id, value]));
      await runGraph(thread, new Command({ resume: map }), state, held);
    });
  }

  /** Asks one question after the other; true when the person left one open. */
  async function askAll(questions: readonly Question[]): Promise<boolean> {
    const given: Array<{ question: Question; answer: Answer }> = [];
    let paused = false;
    for (const question of questions) {
      signal.throwIfAborted();
      emit({ type: "question", question });
      const answer = await ask(question, signal);
      if (answer === undefined) {
        paused = true;
        break;
      }
      given.push({ question, answer });
    }
    if (given.length > 0) await resume(given); // also when paused: what was answered must not be lost
    return paused;
  }

  let pending: object | undefined;
  if (typeof input === "string") pending = { ...options.state, messages: [new HumanMessage(input)] };
  else if (input) pending = { ...options.state, messages: input.messages };

  const before = new Set(messagesOf((await read()).values).map((message) => message.id));
  let paused = false;
  while (!paused) {
    const seen = await read();
    const questions = questionsOf(seen);
    if (questions.length > 0) {
      paused = await askAll(questions);
      continue;
    }
    if (!wasCut(seen) && pending === undefined) break;
    await exclusive(async (held) => {
      const state = await read();
      if (questionsOf(state).length > 0) return; // came up meanwhile: ask first
      if (wasCut(state)) {
        await continueCut(thread, state, held);
        return;
      }
      if (pending === undefined) return;
      const value = pending;
      pending = undefined;
      await runGraph(thread, value, state, held);
    });
  }

  const state = await read();
  const messages = messagesOf(state.values).filter((message) => !before.has(message.id));
  const open = questionsOf(state);
  return {
    status: paused ? "paused" : "done",
    questions: open,
    values: state.values as Record<string, unknown>, // a graph's state is an object by construction
    messages,
    reply: paused ? "" : replyOf(messages),
  };
}
