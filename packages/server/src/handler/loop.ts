import type { InputRequest } from "@modelcontextprotocol/server";
import { ConfigError, type JsonObject, TenonError } from "@tenon/core";
import { digest, toJson } from "@tenon/core/internal";
import { Suspension } from "../errors.ts";
import type { Asked, StepResult } from "./journal.ts";
import type { Ended, Linear, Outcome, Question, Round } from "./linear.ts";

/** How long a suspended handler may take for its own cleaning up before the question goes out without it. */
const GRACE_MS = 200;
/** How long a step waits for the handler to reach a question whose answer is missing; it does at once unless it changed. */
const REACH_MS = 5_000;

const settled = async (set: ReadonlySet<Promise<unknown>>): Promise<void> => {
  while (set.size > 0) await Promise.allSettled(set);
};

/** The part of a round that exists once its handler has asked for something. */
export interface Loop extends Omit<Linear, "isOpen"> {
  /** @param outcome undefined when the handler was left behind */
  end<T>(outcome: Outcome<T> | undefined): Promise<Ended<T>>;
}

/**
 * @param call shared with the handler's context: over as soon as the round is answered
 * @param leaveBehind gives up waiting for a suspended handler
 */
export function createLoop(round: Round, call: { over: boolean }, leaveBehind: () => void): Loop {
  const { journal, answers, complete, recorder } = round;
  const questions = new Map<string, { asked: Asked; request: InputRequest }>();
  const valid = new Map<string, { print: string; answer: JsonObject }>();
  const unanswered = new Set<string>();
  const reached = new Set<string>();
  const ordinals = new Map<string, number>();
  const usedSteps = new Set<string>();
  const usedQuestions = new Set<string>();
  const running = new Set<Promise<unknown>>();
  const reading = new Set<Promise<unknown>>();
  let begun: Promise<void> | undefined;
  let suspended = false;
  /** The handler wants the call to go on elsewhere. */
  let leaving = false;
  let refused: { error: unknown } | undefined;
  let unrecorded: { error: unknown } | undefined;
  /** A mistake of the handler's author, which nobody should be asked about first. */
  let mistake: ConfigError | undefined;
  /** The suspensions of this round's own questions. */
  const asks = new WeakSet<object>();
  let grace: NodeJS.Timeout | undefined;

  let announce: () => void = () => undefined;
  const suspension = new Promise<void>((resolve) => {
    announce = resolve;
  });

  function suspend(): void {
    if (suspended) return;
    suspended = true;
    announce();
    // a handler that never settles must not keep the question from going out
    void settled(running).then(() => {
      grace = setTimeout(leaveBehind, GRACE_MS);
    });
  }
  function checkOpen(what: string): void {
    if (suspended) throw new Suspension([...questions.keys()].join(", ") || what);
    if (!call.over) return;
    throw new TenonError(
      `${what}: the call was answered already; wait for everything a handler starts before it returns`,
      {
        code: "call_ended",
      },
    );
  }
  function track<V>(set: Set<Promise<unknown>>, work: Promise<V>): Promise<V> {
    set.add(work);
    const remove = (): void => void set.delete(work);
    work.then(remove, remove); // also keeps a promise that the handler awaits later from ending the process
    return work;
  }

  async function answerTo<A>(key: string, question: Question<A>): Promise<{ answer: A } | undefined> {
    const known = journal.answers.get(key);
    if (known) {
      if (known.print !== question.print) {
        throw new TenonError(
          `The question "${key}" is not the one that was answered: its message or shape changed between two rounds of the call. ` +
            "Give questions that may change a key of their own",
          { code: "question_changed", data: { key } },
        );
      }
      const read = await question.read(known.answer, key);
      if (read) return read;
      journal.answers.delete(key); // it was right when it came, and is not any more: only a new answer counts
    }
    const asked = journal.asked.get(key);
    if (!asked) return undefined;
    reached.add(key);
    const given = answers.get(key);
    // an answer to a question that has changed is no answer: it is asked again
    const read = given && asked.print === question.print ? await question.read(given, key) : undefined;
    if (given && read) valid.set(key, { print: question.print, answer: given });
    else unanswered.add(key);
    return read;
  }

  async function ask<A>(prepare: () => Question<A>): Promise<A> {
    try {
      return await askOnce(prepare);
    } catch (error) {
      if (error instanceof ConfigError) mistake ??= error;
      throw error;
    }
  }

  async function askOnce<A>(prepare: () => Question<A>): Promise<A> {
    checkOpen("a question");
    const question = prepare();
    const { print, kind } = question;
    const ordinal = ordinals.get(print) ?? 0;
    ordinals.set(print, ordinal + 1);
    const key = question.key ?? `q_${print.slice(0, 10)}_${ordinal}`;
    if (usedQuestions.has(key)) {
      throw new ConfigError(`The question key "${key}" was used twice in one run; give each question its own key`, {
        code: "question_key",
        data: { key },
      });
    }
    usedQuestions.add(key);
    const found = await track(reading, answerTo(key, question));
    if (found) return found.answer;
    if (question.refusal) {
      refused ??= { error: question.refusal };
      suspend();
      throw question.refusal;
    }
    questions.set(key, { asked: { kind, print }, request: await question.request(key) });
    suspend();
    const waits = new Suspension(key);
    asks.add(waits);
    throw waits;
  }

  async function takeEffect<V>(key: string, fn: (idempotencyKey: string) => V | Promise<V>): Promise<V> {
    try {
      return await fn(digest([journal.call, key]));
    } catch (error) {
      usedSteps.delete(key); // nothing was recorded: the handler may try the step again
      if (!(error instanceof Suspension) || !asks.has(error)) throw error;
      mistake ??= new ConfigError(
        `ctx.step: the function of "${key}" asks a question or starts a task, so it would run again afterwards; ` +
          "do that before the step and hand the answer in",
        { code: "step_asks", data: { key } },
      );
      throw mistake;
    }
  }

  /** The answers of a round count together or not at all: no effect may follow one of them while another is wrong. */
  async function allAnswered(): Promise<void> {
    if (journal.asked.size === 0) return;
    await Promise.resolve();
    await settled(reading);
    if (complete && unanswered.size === 0) return;
    // the question without an answer may be reached a moment after this step; reaching it suspends the round
    const timer = setTimeout(suspend, REACH_MS);
    await suspension;
    clearTimeout(timer);
    throw new Suspension([...unanswered].join(", "));
  }

  async function leave(): Promise<never> {
    checkOpen("ctx.startTask()");
    await allAnswered();
    leaving = true;
    suspend();
    const leaves = new Suspension("ctx.startTask()");
    asks.add(leaves);
    throw leaves;
  }

  async function step<V>(key: string, fn: (idempotencyKey: string) => V | Promise<V>): Promise<V> {
    checkOpen(`step "${key}"`);
    if (usedSteps.has(key)) {
      throw new ConfigError(`ctx.step: the key "${key}" was used twice in one run; give each step its own key`, {
        code: "step_key",
        data: { key },
      });
    }
    usedSteps.add(key);
    const recorded = journal.steps.get(key);
    if (recorded) return recorded[0] as V; // recorded by the same step: the same type after JSON
    await allAnswered();
    await recorder?.check?.(key);
    if (recorder) {
      begun ??= recorder.begin().catch((error: unknown) => {
        unrecorded = { error };
        throw error;
      });
      await begun;
    }
    const value = await takeEffect(key, fn);
    const result: StepResult = value === undefined ? [] : [toJson(value, `result of step "${key}"`)];
    journal.steps.set(key, result);
    await recorder?.record(key, [...result]);
    return result[0] as V; // what later runs will see
  }

  async function end<T>(outcome: Outcome<T> | undefined): Promise<Ended<T>> {
    // a step that still runs beside the question must be recorded, or it would run again
    // looked at and closed in one go: what starts between the two would have an effect nobody records
    while (running.size > 0) await settled(running);
    call.over = true;
    clearTimeout(grace);

    if (unrecorded) return { unrecorded: unrecorded.error };
    if (refused) return { refused: refused.error };
    if (questions.size > 0) {
      if (mistake) return { failed: mistake };
      const asked = [...questions].map(([key, question]) => [key, question.asked] as const);
      const consumed = complete && (unanswered.size === 0 || begun !== undefined);
      if (consumed) {
        for (const [key, answered] of valid) journal.answers.set(key, answered);
        journal.asked = new Map(asked);
        journal.given = new Map();
      } else {
        journal.asked = new Map([...[...journal.asked].filter(([key]) => reached.has(key)), ...asked]);
        journal.given = new Map([...valid].map(([key, { answer }]) => [key, answer]));
      }
      return { questions: new Map([...questions].map(([key, { request }]) => [key, request])), consumed };
    }
    if (leaving) {
      if (mistake) return { failed: mistake };
      for (const [key, answered] of valid) journal.answers.set(key, answered);
      journal.asked = new Map();
      journal.given = new Map();
      return { left: true };
    }
    if (suspended) {
      const missing = [...journal.asked.keys()].filter((key) => !answers.has(key));
      return {
        failed: new TenonError(
          `The handler no longer asks "${missing.join('", "')}", which this call waits for: it changed between two rounds`,
          { code: "question_changed", data: { missing } },
        ),
      };
    }
    return outcome ?? { failed: new Suspension("none") }; // left behind only when suspended: handled above
  }

  return {
    ask: (prepare) => track(running, ask(prepare)),
    step: (key, fn) => track(running, step(key, fn)),
    leave: () => track(running, leave()),
    end,
  };
}
