import type { BaseMessage, BaseMessageLike } from "@langchain/core/messages";
import { ConfigError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { type Question, questionsOf, type RunnableAgent, readThread } from "../question/open-questions.ts";
import { messagesOf, type RunEvent } from "./events.ts";
import { eventReader } from "./stream-reader.ts";
import { runThread } from "./stream-run.ts";
import { exclusiveOf, replyOf, type Thread, type ThreadOptions, wasCut } from "./stream-thread.ts";
import { type Ask, turnOf } from "./turn.ts";

/** How `runInteractive` reaches the person and the thread. */
export interface InteractiveOptions extends ThreadOptions {
  /** Further keys of the state, sent together with the input. */
  readonly state?: Readonly<Record<string, unknown>>;
  /** Asks the person. Undefined leaves the question open and ends with status `"paused"`. */
  readonly ask: Ask;
  /** Hears what happens, as it happens. */
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
 * @throws ConfigError `code: "no_checkpointer"`, `"unknown_interrupt"` or `"answer_kind"`; ThreadBusyError and ThreadLeaseLostError
 *   with `leases`; errors of the run as they are
 * @example
 * const { reply } = await runInteractive(agent, "Refund order 1234", {
 *   threadId: "t1",
 *   ask: async (question) => (question.kind === "approval" ? { decisions: [{ type: "approve" }] } : undefined),
 * });
 * @example
 * // after a restart: nothing new to say, only what is open
 * await runInteractive(agent, undefined, { threadId: "t1", ask });
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
  const { threadId, state } = options;
  const signal = options.signal ?? new AbortController().signal;
  const exclusive = exclusiveOf(options, signal, "runInteractive");
  const emit = options.onEvent ?? (() => {});
  const thread: Thread = {
    agent,
    options,
    events: eventReader(agent), // one for all runs
    emit: (event) => {
      if (event.type !== "question") emit(event); // a question is told when its turn has come
    },
  };
  const asked = new Map<string, Question>();
  const turn = turnOf(input, (question) => {
    signal.throwIfAborted();
    asked.set(question.id, question);
    emit({ type: "question", question });
    return options.ask(question, signal);
  });

  let now = await readThread(agent, threadId);
  const before = new Set(messagesOf(now.values).map((message) => message.id));
  for (let unsent = false; ; ) {
    const next = await turn.next({ questions: questionsOf(now), unsent, cut: wasCut(now) });
    if (!next) break;
    const work = { input: next.input, state, signal, exclusive, shown: (question: Question) => question };
    const outcome = await runThread(thread, work);
    const gone = outcome.dropped.flatMap((id) => asked.get(id) ?? []);
    if (gone.length > 0) emit({ type: "superseded", questions: gone });
    if (outcome.error !== undefined) throw outcome.error;
    unsent = outcome.unsent;
    now = outcome.thread ?? (await readThread(agent, threadId));
  }

  const messages = messagesOf(now.values).filter((message) => !before.has(message.id));
  return {
    status: turn.paused ? "paused" : "done",
    questions: questionsOf(now),
    values: now.values as Record<string, unknown>, // a graph's state is an object by construction
    messages,
    reply: turn.paused ? "" : replyOf(messages),
  };
}
