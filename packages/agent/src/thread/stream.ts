import { randomUUID } from "node:crypto";
import type { BaseMessageLike } from "@langchain/core/messages";
import { ConfigError, TenonError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { Answer, RunnableAgent } from "../question/open-questions.ts";
import { cutText } from "./stream-bounds.ts";
import { eventBuffer } from "./stream-buffer.ts";
import { type StreamError, toStreamError } from "./stream-error.ts";
import { eventReader } from "./stream-reader.ts";
import { type Outcome, type RunWork, runThread, shortfallOf } from "./stream-run.ts";
import { type Shaped, type StreamRedactor, shaper } from "./stream-shape.ts";
import { exclusiveOf, type Thread, type ThreadOptions } from "./stream-thread.ts";

/** How a run ended. `"waiting"`: a person is asked; resume the thread with the answer. */
export type EndState = "done" | "waiting" | "failed" | "aborted";

/** What every event of a stream says about itself. */
export interface StreamStamp {
  /** Rises by one from event to event. */
  readonly seq: number;
  readonly threadId: string;
  readonly runId: string;
  /** When it happened: milliseconds since 1970. */
  readonly timestamp: number;
}

type Body =
  | Shaped
  /** The first event. `resumed`: answers to questions came with this run. */
  | { readonly type: "run-start"; readonly resumed: boolean }
  /** The run failed, or did less than it was asked to. The last but one event. */
  | { readonly type: "error"; readonly error: StreamError }
  /** The last event. */
  | {
      readonly type: "end";
      readonly state: EndState;
      /** What to show the person, when done: the model's last words, or the last tool's text when a tool ended the run. */
      readonly reply?: string;
      /** Ids of the questions that are open now. */
      readonly questions: readonly string[];
      /** Log events that a slow reader has lost. */
      readonly lostLogs?: number;
      readonly truncated?: boolean;
    };

/** One event of a run: plain JSON of bounded size. */
export type StreamEvent = StreamStamp & Body;

/** An answer to one open question. The second id, where given, ties it to the asking that the person saw. */
export type StreamAnswer = Answer & {
  /** The question's id. */
  readonly id: string;
  readonly approvalId?: string;
  readonly elicitationId?: string;
};

/** What a run begins with: a message, messages, answers to open questions, or undefined to continue a run that was cut. */
export type StreamInput =
  | string
  | { readonly messages: readonly BaseMessageLike[] }
  | { readonly resume: readonly StreamAnswer[] }
  | undefined;

/** How `streamRun` runs the thread, and what its events may tell. */
export interface StreamOptions extends ThreadOptions {
  /** Names the run in its events. Default a new UUID. */
  readonly runId?: string;
  /** `seq` of the first event. Default 1. */
  readonly firstSeq?: number;
  /** Further keys of the state, sent together with a message. */
  readonly state?: Readonly<Record<string, unknown>>;
  /** Ends the run with state `"aborted"`; the thread can be continued later. */
  readonly signal?: AbortSignal;
  /** Takes secrets out of arguments, results, logs and state, for example `redactor()` of `@tenon/client/interceptors`. */
  readonly redact?: StreamRedactor;
  /** Unread events above which log lines are dropped. Default 512. */
  readonly maxBuffered?: number;
  /** UTF-16 units of a text, and of the JSON of a value, above which an event is cut. Default 16384. */
  readonly maxTextChars?: number;
  /** Hears of errors whose text the stream masks. Default: one line on stderr. */
  readonly onError?: (error: unknown, reference: string) => void;
}

/** The events of one run, to be read once. The run begins with the first read. */
export interface RunStream extends AsyncIterableIterator<StreamEvent> {
  readonly threadId: string;
  readonly runId: string;
}

/** The keys of `StreamOptions`. */
export const STREAM_OPTIONS: readonly string[] =
  "threadId runId firstSeq context state signal leases lease exclusive recursionLimit redact maxBuffered maxTextChars onError".split(
    " ",
  );
/** What an aborted run may take to stop before its stream ends without it. */
const STOP_MS = 5_000;

function toStderr(error: unknown, reference: string): void {
  process.stderr.write(`tenon: run failed (reference ${reference}): ${error instanceof Error ? error.stack : error}\n`);
}

/**
 * @param where how the function is called in a message
 * @throws ConfigError `code: "unknown_option"`, `"no_thread"`, `"two_locks"` or `"invalid_option"`
 */
export function checkStreamOptions(options: StreamOptions, keys: readonly string[], where: string): void {
  checkOptions(options, keys, `${where}(agent, input, options)`);
  if (typeof options.threadId !== "string" || options.threadId === "") {
    throw new ConfigError(`${where} needs options.threadId, the name of the conversation`, { code: "no_thread" });
  }
  exclusiveOf(options, new AbortController().signal, where); // throws now, not in the stream
  for (const [key, least] of [
    ["maxBuffered", 1],
    ["maxTextChars", 64],
    ["firstSeq", 0],
  ] as const) {
    const given = options[key];
    if (given !== undefined && !(Number.isSafeInteger(given) && given >= least)) {
      throw new ConfigError(`${where}'s ${key} is a whole number of at least ${least}; given ${given}`, {
        code: "invalid_option",
      });
    }
  }
}

/** Resolves some time after the signal has fired, for runs that do not stop. */
async function overdue(signal: AbortSignal, done: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const late = (): void => {
      const timer = setTimeout(resolve, STOP_MS);
      done.addEventListener("abort", () => clearTimeout(timer), { once: true });
    };
    if (signal.aborted) late();
    else signal.addEventListener("abort", late, { once: true });
  });
}

/**
 * Runs an agent on a thread and tells everything that happens as one stream of events: first `run-start`, last `end`. What a
 * person must be asked comes as `question` before an `end` with state `"waiting"`; another stream with
 * `{ resume: [{ id, … }] }` answers and continues. A message while a question is open is not sent: `error` with code
 * `"questions_open"`.
 *
 * Reading never throws: what goes wrong is an `error` event and an `end`. The run does not wait for its reader; see
 * `StreamOptions.maxBuffered` for what a slow one may miss. Leaving the loop early aborts the run.
 *
 * @throws ConfigError `code: "unknown_option"`, `"no_thread"`, `"two_locks"` or `"invalid_option"`, before anything runs
 * @example
 * for await (const event of streamRun(agent, "Refund order 1234", { threadId: "t1" })) {
 *   if (event.type === "text") process.stdout.write(event.delta);
 * }
 */
export function streamRun(agent: RunnableAgent, input: StreamInput, options: StreamOptions): RunStream {
  checkStreamOptions(options, STREAM_OPTIONS, "streamRun");
  const { threadId, runId = randomUUID(), firstSeq = 1, maxTextChars: maxText = 16_384, onError = toStderr } = options;
  const buffer = eventBuffer<Body & { timestamp: number }>(options.maxBuffered ?? 512, maxText);
  const push = (body: Body): void => buffer.push({ ...body, timestamp: Date.now() });
  const report = (error: unknown, reference: string): void => {
    try {
      onError(error, reference);
    } catch {
      // who listens to errors must not make one
    }
  };
  const shape = shaper({ redact: options.redact, maxText, onRedactError: (error) => report(error, "redact") });
  const own = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, own.signal]) : own.signal;

  function fail(thrown: unknown): void {
    const { error, masked } = toStreamError(thrown);
    if (masked) report(thrown, error.reference ?? "");
    push({ type: "error", error });
  }

  function end({ state, questions, reply }: Pick<Outcome, "state" | "questions" | "reply">): void {
    const { value, truncated } = cutText(reply ?? "", maxText);
    push({
      type: "end",
      state,
      ...(reply !== undefined && { reply: value }),
      questions: questions.map(({ id }) => id),
      ...(truncated && { truncated }),
    });
  }

  /** Never rejects. */
  async function run(): Promise<void> {
    const done = new AbortController();
    let over = false; // what a run that does not stop says later is not told
    const thread: Thread = {
      agent,
      options,
      events: eventReader(agent),
      emit: (event) => {
        if (!over) for (const body of shape(event)) push(body);
      },
    };
    const work: RunWork = {
      input,
      state: options.state,
      signal,
      exclusive: exclusiveOf(options, signal, "streamRun"),
      shown: (question) => {
        const [shaped] = shape({ type: "question", question });
        return shaped?.type === "question" ? shaped.question : question;
      },
    };
    try {
      push({ type: "run-start", resumed: typeof input === "object" && "resume" in input });
      const aborted: Outcome = { state: "aborted", questions: [], dropped: [], unsent: false };
      const late = overdue(signal, done.signal).then(() => aborted);
      const outcome = await Promise.race([runThread(thread, work), late]);
      over = true;
      const problem = outcome.error ?? shortfallOf(outcome, threadId);
      if (problem !== undefined && outcome.state !== "aborted") fail(problem);
      end(outcome);
    } catch (error) {
      over = true;
      if (!signal.aborted) fail(error);
      end({ state: signal.aborted ? "aborted" : "failed", questions: [] });
    } finally {
      done.abort();
    }
  }

  async function* deliver(): AsyncGenerator<StreamEvent, undefined> {
    let running: Promise<void> | undefined;
    let seq = firstSeq;
    try {
      running = run();
      for (;;) {
        const body = buffer.take();
        if (body === undefined) {
          await buffer.ready();
          continue;
        }
        const stamp = { seq: seq++, threadId, runId };
        if (body.type !== "end") yield { ...stamp, ...body };
        else return yield { ...stamp, ...body, ...(buffer.lost > 0 && { lostLogs: buffer.lost }) };
      }
    } finally {
      own.abort(new TenonError("The reader of the run's events has left", { code: "reader_left" }));
      await running;
    }
  }

  const events = deliver();
  return {
    threadId,
    runId,
    next: () => events.next(),
    return: () => {
      own.abort(new TenonError("The reader of the run's events has left", { code: "reader_left" }));
      return events.return(undefined);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
