import { setMaxListeners } from "node:events";
import { AIMessage, type BaseMessage, type BaseMessageLike, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { ConfigError, checkOptions, isRecord, TenonError } from "@tenon/core";
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
import { eventReader, STREAM_MODES } from "./stream-reader.ts";

/** How `runInteractive` reaches the person and the thread. */
export interface InteractiveOptions {
  readonly threadId: string;
  /** The run's context, as the agent's `contextSchema` wants it. */
  readonly context?: unknown;
  /** Further keys of the state, sent together with the input. */
  readonly state?: Readonly<Record<string, unknown>>;
  /** Asks the person. Undefined leaves the question open and ends with status `"paused"`. */
  readonly ask: (question: Question, signal: AbortSignal) => Promise<Answer | undefined> | Answer | undefined;
  readonly onEvent?: (event: RunEvent) => void;
  /** Cancels the run; the thread can be continued later. */
  readonly signal?: AbortSignal;
  /**
   * Runs `work` while nobody else runs this thread, for example under a lease. Savers do not lock: without it two processes
   * may resume the same question. The person is asked outside of it.
   */
  readonly exclusive?: <T>(work: () => Promise<T>) => Promise<T>;
  /** Steps of the graph per run. LangGraph's default when left out. */
  readonly recursionLimit?: number;
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

const OPTIONS = ["threadId", "context", "state", "ask", "onEvent", "signal", "exclusive", "recursionLimit"];

function replyOf(messages: readonly BaseMessage[]): string {
  const last = messages.at(-1);
  if (ToolMessage.isInstance(last)) return last.text;
  return AIMessage.isInstance(last) ? last.text : "";
}

/** Whether the thread stopped in the middle of a run: steps are due, and none of them waits for a person. */
function wasCut(state: ThreadState): boolean {
  return state.next.length > 0 && questionsOf(state).length === 0;
}

/**
 * Drives an agent until it has nothing left to do or a question stays open: asks what is open on the thread, continues a run
 * that was cut, then sends the input, and so on. Nothing is kept in memory between calls, so a question that was left open, or
 * a process that died, is picked up by the next call, also in another process.
 *
 * @throws ConfigError `code: "no_checkpointer"`, `"unknown_interrupt"` or `"answer_kind"`; errors of the run as they are
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
  const exclusive = options.exclusive ?? ((work) => work());
  const signal = options.signal ?? new AbortController().signal;
  const emit = options.onEvent ?? (() => {});
  const events = eventReader(agent);
  const read = () => readThread(agent, threadId);

  async function run(value: unknown, state: ThreadState): Promise<void> {
    signal.throwIfAborted();
    events.begin(state.values);
    // createAgent spreads the saved state into an input as soon as it has middleware, which doubles every channel with a
    // reducer; its graph does not, but only the agent fills in middleware defaults, which a new thread needs
    const runner = isRecord(state.values) && Object.keys(state.values).length > 0 ? (agent.graph ?? agent) : agent;
    // LangGraph never takes its listeners off a signal again, and a person's signal lives as long as they talk
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
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  async function resume(given: ReadonlyArray<{ question: Question; answer: Answer }>): Promise<void> {
    const values = given.map(({ question, answer }) => ({ question, value: resumeValue(question, answer) }));
    await exclusive(async () => {
      const state = await read();
      const open = new Set(questionsOf(state).map((question) => question.id));
      const gone = values.filter(({ question }) => !open.has(question.id));
      if (gone.length > 0) emit({ type: "superseded", questions: gone.map(({ question }) => question) });
      const valid = values.filter(({ question }) => open.has(question.id));
      if (valid.length === 0) return;
      const map = Object.fromEntries(valid.map(({ question, value }) => [question.id, value]));
      await run(new Command({ resume: map }), state);
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

  async function continueCut(state: ThreadState): Promise<void> {
    await run(null, state);
    const after = await read();
    if (wasCut(after) && after.config.configurable?.checkpoint_id === state.config.configurable?.checkpoint_id) {
      throw new TenonError(`Thread "${threadId}" has steps left (${after.next.join(", ")}) that do not run`, {
        code: "stuck",
      });
    }
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
    await exclusive(async () => {
      const state = await read();
      if (questionsOf(state).length > 0) return; // came up meanwhile: ask first
      if (wasCut(state)) return continueCut(state);
      if (pending === undefined) return;
      const value = pending;
      pending = undefined;
      await run(value, state);
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
