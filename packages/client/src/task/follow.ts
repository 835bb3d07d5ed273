import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/client";
import { ConnectionError, deserializeError, isRecord, ProtocolError, serializeError, TenonError } from "@tenon/core";
import { isSuspension, noteAsked, suspending } from "../call/marks.ts";
import { asksForInput, checkResult } from "../call/results.ts";
import { answerByHandler, NO_DRIVER } from "../call/rounds.ts";
import { cancelled } from "../connection/deadline.ts";
import { backoff, bounded, sleep } from "../connection/time.ts";
import { checkAnswers, parseQuestions } from "../question/questions.ts";
import type { CallDriver, Leg } from "../types/calls.ts";
import type { ElicitationRequest } from "../types/questions.ts";
import type { FollowOptions } from "../types/tasks.ts";
import { Answers } from "./answers.ts";
import { getTask, refusedWith, sendTask, type TaskTarget } from "./requests.ts";
import { endingOf, isFinal, rawResultOf, taskInWords, type WireTask } from "./task.ts";

/** Milliseconds before the first look, and before the look after an answer: much work is short. */
const SOON_MS = 100;
/** Bounds of the wait between two looks, whatever the server wants; and what it is where the server does not say. */
const LEAST_MS = 100;
const MOST_MS = 60_000;
const USUAL_MS = 1_000;
/** Milliseconds for telling the server that nobody wants the task any more. */
const CANCEL_MS = 2_000;
const WAITS = { firstMs: 250, mostMs: 10_000 };
const INTERNAL_ERROR = -32_603;

const DEFAULTS = { totalMs: 24 * 60 * 60 * 1_000, outageMs: 600_000, maxRounds: 10 } as const;

/** One task and everything its following needs. */
export interface Following extends TaskTarget {
  readonly signal: AbortSignal;
  readonly options: FollowOptions;
  readonly driver: CallDriver | undefined;
  readonly args: Readonly<Record<string, unknown>>;
  /** The number of the next leg. */
  readonly round: number;
}

/** The wait before the next look at a task: what its server wants, a fifth more or less, within bounds. */
export function waitOf({ pollIntervalMs = USUAL_MS }: Pick<WireTask, "pollIntervalMs">, random = Math.random): number {
  return Math.min(MOST_MS, Math.max(LEAST_MS, pollIntervalMs * (0.8 + random() * 0.4)));
}

/** Whether a failure is one of those that pass: the server is away, cut off, or in trouble. */
function passes(error: unknown): boolean {
  if (error instanceof ConnectionError) return error.retryable;
  return refusedWith(error) === INTERNAL_ERROR;
}

/** The same error, with the task in its data, and not to be answered by calling again: the task goes on. */
function aboutTask(error: unknown, taskId: string): unknown {
  if (!(error instanceof TenonError) || isSuspension(error)) return error;
  const { data } = error;
  if (!error.retryable && isRecord(data) && data.taskId === taskId) return error;
  const more = isRecord(data) ? data : data === undefined ? {} : { detail: data };
  const told = deserializeError({
    ...serializeError(error),
    retryable: false,
    maybeExecuted: true,
    data: { ...more, taskId },
  });
  told.cause = error;
  return told;
}

/** Follows one task. Every wait of it ends with the signal of its call. */
class Follower {
  readonly #task: Following;
  readonly #answers = new Answers();
  readonly #server: string;
  readonly #what: string;
  readonly #totalMs: number;
  readonly #outageMs: number;
  readonly #maxRounds: number;
  /** When the following may last until, by the monotonic clock. */
  #until: number;
  #reported = "";
  #said = 0;

  constructor(task: Following) {
    this.#task = task;
    this.#server = task.context.server.name;
    this.#what = taskInWords(task.taskId, task.tool);
    const { totalMs, outageMs, maxRounds } = task.options;
    this.#totalMs = totalMs ?? DEFAULTS.totalMs;
    this.#outageMs = outageMs ?? DEFAULTS.outageMs;
    this.#maxRounds = maxRounds ?? DEFAULTS.maxRounds;
    this.#until = performance.now() + this.#totalMs;
  }

  /** To the end; a handler answers what is asked on the way. */
  async toTheEnd(): Promise<CallToolResult> {
    for (;;) {
      const step = await this.#watch((questions) => this.#askHandler(questions));
      if (!asksForInput(step)) return step;
    }
  }

  /** Leg by leg: each ends when the task asks a person, or is over, and `driver` keeps what it came to. */
  async byLegs(driver: CallDriver, answer: NonNullable<CallDriver["answer"]>): Promise<CallToolResult> {
    const { taskId, tool = "", args, round, context } = this.#task;
    let carried: Record<string, object> = {};
    for (let n = 0; ; n++) {
      const leg: Leg = { server: this.#server, tool, args, round: round + n, task: taskId };
      const given = carried;
      const step = await driver.leg(async () => {
        await this.#update(given);
        return this.#watch(undefined);
      }, leg);
      // a driver gives back what a leg came to
      if (!asksForInput(step)) return step as CallToolResult;
      this.#until = performance.now() + this.#totalMs;
      const requests = step.inputRequests ?? {};
      this.#ask(Object.keys(requests));
      const questions = parseQuestions(this.#server, requests, context.server.config.expectHosts);
      for (const question of Object.values(questions)) this.#tell(question);
      const replies = await suspending(answer(questions, leg));
      const answered = Object.entries(questions).filter(([key]) => Object.hasOwn(replies, key));
      // none at all is an answer that does not fit: the check says so
      carried = checkAnswers(this.#server, answered.length > 0 ? Object.fromEntries(answered) : questions, replies);
      this.#answers.note(carried);
    }
  }

  /** Until the task is over, or asks a person and nobody is given to ask. @throws the error the task ended with */
  async #watch(
    askPerson: ((requests: Record<string, unknown>) => Promise<void>) | undefined,
  ): Promise<CallToolResult | InputRequiredResult> {
    const { context, source, tool } = this.#task;
    for (let wait = SOON_MS; ; ) {
      await this.#nap(wait);
      const task = await this.#look();
      const error = endingOf(this.#server, tool, task);
      if (error) throw error;
      if (isFinal(task)) return checkResult(this.#server, tool ?? this.#what, rawResultOf(this.#server, tool, task));
      wait = waitOf(task);
      const open = this.#answers.open(task);
      if (Object.keys(open).length === 0) {
        await this.#update(this.#answers.overdue(task));
        continue;
      }
      wait = Math.min(SOON_MS, wait);
      noteAsked(source);
      const { own, rest } = context.peers.split(open);
      for (const [key, request] of Object.entries(own)) {
        this.#ask([key]);
        const answer = await this.#whileOpen(key, (until) => context.peers.answer({ [key]: request }, source, until));
        if (answer) await this.#send(answer);
      }
      if (Object.keys(rest).length === 0) continue;
      if (!askPerson) {
        // requests of a task have the form of those of a call
        return { resultType: "input_required", inputRequests: rest } as InputRequiredResult;
      }
      await askPerson(rest);
    }
  }

  /** Has the handler answer, one question after the other; each answer is sent at once. */
  async #askHandler(requests: Record<string, unknown>): Promise<void> {
    const { context, source } = this.#task;
    const fresh = Object.keys(requests).filter((key) => !this.#answers.wasAsked(key));
    this.#ask(Object.keys(requests));
    const questions = parseQuestions(this.#server, requests, context.server.config.expectHosts);
    for (const key of fresh) if (questions[key]) this.#tell(questions[key]);
    for (const [key, question] of Object.entries(questions)) {
      const answer = await this.#whileOpen(key, (signal) =>
        answerByHandler(
          context.elicitation,
          { [key]: question },
          { what: this.#what, source, signal, suspends: NO_DRIVER },
        ),
      );
      // answered elsewhere, or over: what else is open may have changed too
      if (!answer) return;
      // each value is an answer of the wire
      await this.#send(answer as Record<string, object>);
    }
  }

  #tell(question: ElicitationRequest): void {
    const { context, source } = this.#task;
    context.emit(context.events.onElicitation, question, source);
  }

  #ask(keys: readonly string[]): void {
    if (this.#answers.ask(keys, this.#maxRounds)) return;
    throw new ProtocolError(
      `${this.#what} on server "${this.#server}" still asks after ${this.#maxRounds} rounds of answers; it was given up. Raise ` +
        "task.maxRounds if it may ask more",
      { code: "too_many_rounds", server: this.#server, maybeExecuted: true, data: { taskId: this.#task.taskId } },
    );
  }

  async #send(answers: Record<string, object>): Promise<void> {
    this.#answers.note(answers);
    await this.#update(answers);
  }

  /** Sends answers. One that is refused although its question is open is the caller's to know of. */
  async #update(answers: Record<string, object>): Promise<void> {
    const keys = Object.keys(answers);
    if (keys.length === 0) return;
    const { signal } = this.#task;
    try {
      await this.#patiently(() => sendTask(this.#task, "tasks/update", signal, { inputResponses: answers }));
    } catch (error) {
      if (refusedWith(error) === undefined) throw error;
      const task = await this.#look();
      if (keys.some((key) => Object.hasOwn(task.inputRequests, key))) throw error;
    }
  }

  /** Looks at the task, waits out what passes, and tells how far it is. */
  async #look(signal = this.#task.signal): Promise<WireTask> {
    const task = await this.#patiently(() => getTask(this.#task, signal), signal);
    this.#report(task);
    return task;
  }

  #report({ progress, statusMessage: message }: WireTask): void {
    const now = progress ? JSON.stringify(progress) : (message ?? "");
    if (now === "" || now === this.#reported) return;
    this.#reported = now;
    const event = progress ?? { progress: ++this.#said, ...(message !== undefined && { message }) };
    const { context, source } = this.#task;
    context.emit(context.events.onProgress, event, source);
    context.emit(context.options.onProgress, event, source);
  }

  /** Lets somebody work on an answer while its question is open; undefined when it is open no more. Nobody's clock runs. */
  async #whileOpen<T>(key: string, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const unwanted = new AbortController();
    const signal = AbortSignal.any([this.#task.signal, unwanted.signal]);
    const began = performance.now();
    const watching = async (): Promise<undefined> => {
      for (let wait = USUAL_MS; ; ) {
        await sleep(wait, signal);
        const task = await this.#look(signal);
        if (isFinal(task) || !Object.hasOwn(task.inputRequests, key)) return undefined;
        wait = waitOf(task);
      }
    };
    try {
      return await Promise.race([work(signal), watching()]);
    } catch (error) {
      throw this.#task.signal.aborted ? this.#cancelled() : error;
    } finally {
      unwanted.abort("the question is not open any more");
      this.#until += performance.now() - began;
    }
  }

  /** Repeats what fails for a reason that passes, for as long as the server may be away. */
  async #patiently<T>(work: () => Promise<T>, signal = this.#task.signal): Promise<T> {
    const waits = backoff(WAITS);
    const began = performance.now();
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (signal.aborted || !passes(error)) throw error;
        const asked = error instanceof TenonError && isRecord(error.data) ? error.data.retryAfterMs : undefined;
        const wait = typeof asked === "number" ? Math.min(MOST_MS, Math.max(asked, LEAST_MS)) : waits.next();
        const away = performance.now() - began;
        if (away + wait > this.#outageMs) throw this.#outOfReach(away, error as TenonError); // `passes` knows no other
        await sleep(wait, signal).catch(() => {
          throw this.#cancelled();
        });
      }
    }
  }

  /** Waits for the next look. @throws ConnectionError `cancelled`, `closed`, or `timeout` when the following has lasted too long */
  async #nap(ms: number): Promise<void> {
    const { signal, taskId } = this.#task;
    const left = this.#until - performance.now();
    await sleep(Math.max(0, Math.min(ms, left)), signal).catch(() => {
      throw this.#cancelled();
    });
    if (ms < left) return;
    throw new ConnectionError(
      `${this.#what} on server "${this.#server}" was followed for ${this.#totalMs} ms and is not over. It goes on: follow it ` +
        "with client.tasks.resume(server, id), or raise task.totalMs",
      { code: "timeout", server: this.#server, maybeExecuted: true, data: { taskId, ms: this.#totalMs } },
    );
  }

  #cancelled(): ConnectionError {
    return cancelled(this.#server, this.#what, this.#task.signal.reason, true);
  }

  #outOfReach(ms: number, cause: TenonError): ConnectionError {
    return new ConnectionError(
      `server "${this.#server}" was out of reach for ${Math.round(ms)} ms while ${this.#what} was followed (${cause.message}). The task ` +
        "may go on: follow it with client.tasks.resume(server, id), or raise task.outageMs",
      { code: cause.code, server: this.#server, maybeExecuted: true, data: { taskId: this.#task.taskId }, cause },
    );
  }
}

/** Whether a call that was aborted leaves its task running: it is not unwanted, only not followed here any more. */
function leaves(reason: unknown, driver: CallDriver | undefined): boolean {
  return (reason instanceof ConnectionError && reason.code === "closed") || driver?.leavesTask?.(reason) === true;
}

/**
 * Follows a task to its end: looks at it as often as its server wants, tells its progress, has its questions answered, waits out
 * restarts of the server. When the call is aborted the task is cancelled, unless the client was closed.
 * @returns the checked result, as `tools/call` would have given it
 * @throws TenonError with `data.taskId`, none of them retryable: `task_gone`, `task_cancelled`, `rpc_error` for a failed one,
 *   `bad_answer`, `too_many_rounds`, `timeout`, and as `answerByHandler`
 */
export async function followTask(task: Following): Promise<CallToolResult> {
  const { driver, signal, taskId, tool = "", args, round, context } = task;
  const follower = new Follower(task);
  try {
    if (driver?.answer) return await follower.byLegs(driver, driver.answer.bind(driver));
    if (!driver) return await follower.toTheEnd();
    const leg: Leg = { server: context.server.name, tool, args, round, task: taskId };
    // a driver gives back what a leg came to, and this one came to an end
    return (await driver.leg(() => follower.toTheEnd(), leg)) as CallToolResult;
  } catch (error) {
    if (signal.aborted && !leaves(signal.reason, driver)) {
      await bounded(
        sendTask(task, "tasks/cancel", AbortSignal.timeout(CANCEL_MS)).catch(() => {}), // it was not wanted any more anyway
        CANCEL_MS,
      );
    }
    throw aboutTask(error, taskId);
  }
}
