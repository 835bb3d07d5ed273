import { setMaxListeners } from "node:events";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { isCommand } from "@langchain/langgraph";
import { ConfigError, TenonError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { LeaseStore } from "@tenon/store";
import { questionsOf, type RunnableAgent, readThread, type ThreadState } from "../question/open-questions.ts";
import type { ThreadEvent } from "./events.ts";
import { DURABILITY, runnerOf } from "./invoke.ts";
import { LEASE_OPTIONS, type ThreadLeaseOptions, withThreadLease } from "./lease.ts";
import { inRun } from "./run-trace.ts";
import { type EventReader, STREAM_MODES } from "./stream-reader.ts";

/** How a thread is run, whoever reads its events. */
export interface ThreadOptions {
  /** The conversation. */
  readonly threadId: string;
  /** The run's context, as the agent's `contextSchema` wants it. */
  readonly context?: unknown;
  /**
   * Keeps the thread to one run at a time, in all processes that share the store: savers do not lock, and without a lease two
   * processes may resume the same question. Held while the agent runs, not while a person thinks.
   */
  readonly leases?: LeaseStore;
  /** How the lease is taken and kept. */
  readonly lease?: Omit<ThreadLeaseOptions, "signal">;
  /** Instead of `leases`: runs `work` while nobody else runs this thread, by a lock of your own. */
  readonly exclusive?: <T>(work: () => Promise<T>) => Promise<T>;
  /** Steps of the graph per run. LangGraph's default when left out. */
  readonly recursionLimit?: number;
}

/** Runs work while nobody else runs the thread; the signal stops it when that is no longer so. */
export type Exclusive = <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/**
 * The lock of a thread by its options.
 * @param where how the function is called in a message
 * @throws ConfigError `code: "two_locks"`
 */
export function exclusiveOf(options: ThreadOptions, signal: AbortSignal, where: string): Exclusive {
  const { threadId, leases, lease, exclusive } = options;
  checkOptions(lease ?? {}, LEASE_OPTIONS, `${where}'s options.lease`);
  if (leases && exclusive) {
    throw new ConfigError(`${where} takes options.leases or options.exclusive, not both`, { code: "two_locks" });
  }
  if (leases) return (work) => withThreadLease(leases, threadId, work, { ...lease, signal });
  return exclusive ? (work) => exclusive(() => work(signal)) : (work) => work(signal);
}

/**
 * Whether the thread stopped in the middle of a run: steps are due, and none of them waits for a person. `next` does not say so:
 * LangGraph leaves out a step whose results were saved before the process died, although what follows it has yet to run.
 */
export function wasCut(state: ThreadState): boolean {
  return state.tasks.length > 0 && questionsOf(state).length === 0;
}

/** What to show the person after a run: the model's last words, or the last tool's text when a tool ended the run. */
export function replyOf(messages: readonly BaseMessage[]): string {
  const last = messages.at(-1);
  return ToolMessage.isInstance(last) || AIMessage.isInstance(last) ? last.text : "";
}

/** One thread of an agent, and where its events go. */
export interface Thread {
  readonly agent: RunnableAgent;
  readonly options: ThreadOptions;
  readonly events: EventReader;
  readonly emit: (event: ThreadEvent) => void;
}

/** Runs the graph once with `value`: an input, a Command, or null to go on. `held` stops it. */
export async function runGraph(thread: Thread, value: unknown, state: ThreadState, held: AbortSignal): Promise<void> {
  const { agent, options } = thread;
  held.throwIfAborted();
  const goesOnFrom = value === null || isCommand(value) ? state : undefined;
  await inRun({ agent, threadId: options.threadId, goesOnFrom }, () => runOnce(thread, value, state, held));
}

async function runOnce(thread: Thread, value: unknown, state: ThreadState, held: AbortSignal): Promise<void> {
  const { agent, options, events, emit } = thread;
  const suspended = questionsOf(state).flatMap((open) => (open.kind === "elicitation" ? [open.toolCallId] : []));
  events.begin(state.values, suspended);
  const runner = runnerOf(agent, state.values);
  // LangGraph never takes its listeners off a signal again, and a person's signal lives as long as they talk
  const own = new AbortController();
  setMaxListeners(0, own.signal);
  const stop = (): void => own.abort(held.reason);
  held.addEventListener("abort", stop, { once: true });
  try {
    const stream = await runner.stream(value, {
      configurable: { thread_id: options.threadId },
      streamMode: [...STREAM_MODES],
      durability: DURABILITY,
      signal: own.signal,
      ...(options.context !== undefined && { context: options.context }),
      ...(options.recursionLimit !== undefined && { recursionLimit: options.recursionLimit }),
    });
    for await (const chunk of stream) {
      if (!Array.isArray(chunk)) continue;
      for (const event of events.read(String(chunk[0]), chunk[1])) emit(event);
    }
    held.throwIfAborted();
  } finally {
    held.removeEventListener("abort", stop);
  }
}

/**
 * Goes on with a run that was cut, and returns the thread as it is afterwards.
 * @throws TenonError `code: "stuck"` when that changes nothing
 */
export async function continueCut(thread: Thread, state: ThreadState, held: AbortSignal): Promise<ThreadState> {
  const { threadId } = thread.options;
  await runGraph(thread, null, state, held);
  const after = await readThread(thread.agent, threadId);
  if (wasCut(after) && after.config.configurable?.checkpoint_id === state.config.configurable?.checkpoint_id) {
    throw new TenonError(`Thread "${threadId}" has steps left (${after.next.join(", ")}) that do not run`, {
      code: "stuck",
    });
  }
  return after;
}
