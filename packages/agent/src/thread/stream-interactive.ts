import { ConfigError } from "@tenon/core";
import type { Question, RunnableAgent } from "../question/open-questions.ts";
import type { InteractiveInput } from "./interactive.ts";
import { checkStreamOptions, STREAM_OPTIONS, type StreamEvent, type StreamOptions, streamRun } from "./stream.ts";
import { type Ask, turnOf } from "./turn.ts";

/** How `streamInteractive` runs the thread, and asks. */
export interface StreamInteractiveOptions extends Omit<StreamOptions, "runId"> {
  /**
   * Asks the person, between two runs. Gets the question as its event told it; undefined leaves it open and ends the stream.
   */
  readonly ask: Ask;
}

const OPTIONS = ["ask", ...STREAM_OPTIONS.filter((key) => key !== "runId")];

/**
 * `streamRun` for a person who is there: the events of all runs that come of a message, with a rising `seq`. Each run is told
 * from its `run-start` to its `end`; after an `end` with state `"waiting"` the person is asked one question after the other,
 * and the answers go into the next run. What was open on the thread is asked first, a run that was cut is continued first,
 * then the message is sent. The stream ends with the `end` of a run after which nothing is due, which has failed, or whose
 * questions the person left open.
 *
 * Reading never throws, unless `ask` does.
 *
 * @throws ConfigError as `streamRun` does, before anything runs
 * @example
 * const ask = async (question: Question) => (question.kind === "approval" ? { decisions: [{ type: "approve" }] } : undefined);
 * for await (const event of streamInteractive(agent, "Refund order 1234", { threadId: "t1", ask })) show(event);
 */
export function streamInteractive(
  agent: RunnableAgent,
  input: InteractiveInput,
  options: StreamInteractiveOptions,
): AsyncGenerator<StreamEvent, void, undefined> {
  checkStreamOptions(options, OPTIONS, "streamInteractive");
  if (typeof options.ask !== "function") {
    throw new ConfigError("streamInteractive needs options.ask, which asks the person a question", {
      code: "invalid_option",
    });
  }
  return runs(agent, input, options);
}

async function* runs(
  agent: RunnableAgent,
  input: InteractiveInput,
  { ask, firstSeq = 1, ...options }: StreamInteractiveOptions,
): AsyncGenerator<StreamEvent, void, undefined> {
  const signal = options.signal ?? new AbortController().signal;
  const turn = turnOf(input, (question) => (signal.aborted ? undefined : ask(question, signal)));
  let seq = firstSeq;
  let next = await turn.next({ questions: [], unsent: false, cut: true }); // the first run finds out what is due
  while (next) {
    const questions: Question[] = [];
    let unsent = false;
    let superseded = false;
    let over = false;
    for await (const event of streamRun(agent, next.input, options)) {
      if (event.type === "question") questions.push(event.question);
      if (event.type === "end") over ||= event.state === "aborted";
      if (event.type === "error") {
        unsent = event.error.code === "questions_open";
        superseded = event.error.code === "superseded";
        over = !unsent && !superseded;
        if (unsent) continue; // it is sent as soon as the questions are answered
      }
      yield { ...event, seq: seq++ };
    }
    if (over) return;
    // who has answered elsewhere may have died over it
    next = await turn.next({ questions, unsent, cut: superseded });
  }
}
