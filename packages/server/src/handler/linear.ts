import type { InputRequest } from "@modelcontextprotocol/server";
import type { Json, JsonObject } from "@tenon/core";
import { Suspension } from "../errors.ts";
import { deadline } from "./deadlines.ts";
import type { Journal, QuestionKind } from "./journal.ts";
import { createLoop, type Loop } from "./loop.ts";

/** A question as the run loop sees it: what identifies it, how it goes out, how its answer is read. */
export interface Question<A> {
  readonly kind: QuestionKind;
  /** Names the question; default: its fingerprint and its ordinal among equals. */
  readonly key: string | undefined;
  readonly print: string;
  /** Why this client cannot be asked. */
  readonly refusal: Error | undefined;
  /** The request that goes out when there is no answer yet. */
  request(key: string): InputRequest | Promise<InputRequest>;
  /** The answer when `given` is a valid one. */
  read(given: JsonObject, key: string): Promise<{ answer: A } | undefined>;
}

/** Keeps finished steps of the round outside this process, so that a crash does not repeat them. */
export interface Recorder {
  /** Before each step has an effect. @throws when it may have none: the round was stopped from outside, or no step can be called so */
  check?(step: string): void | Promise<void>;
  /** Before the first step of the round has an effect. */
  begin(): Promise<void>;
  record(step: string, result: Json): Promise<void>;
}

/** What one round of a call starts from. */
export interface Round {
  readonly journal: Journal;
  /** Answers to the questions of the journal's open round. */
  readonly answers: ReadonlyMap<string, JsonObject>;
  /** Whether all of them are there: until then nothing new may take effect. */
  readonly complete: boolean;
  readonly recorder: Recorder | undefined;
}

/** How a round ended. */
export type Ended<T> =
  | { readonly done: T }
  | { readonly failed: unknown }
  /** The client cannot be asked: this answer is about the client, not about the call. */
  | { readonly refused: unknown }
  /** The handler asked for the call to go on elsewhere; the journal is ready for whoever continues it. */
  | { readonly left: true }
  /** The recorder failed before anything had an effect: the same round may be tried again. */
  | { readonly unrecorded: unknown }
  /** Questions wait; the journal is ready for the next round. `consumed` says whether the answers of this round count. */
  | { readonly questions: ReadonlyMap<string, InputRequest>; readonly consumed: boolean };

/** The two primitives that everything a handler may ask or do once is made of. */
export interface Linear {
  ask<A>(prepare: () => Question<A>): Promise<A>;
  step<T>(key: string, fn: (idempotencyKey: string) => T | Promise<T>): Promise<T>;
  /** Ends the round: the call goes on elsewhere, with what it has answered and done. */
  leave(): Promise<never>;
  /** False as soon as the round was answered: a handler that runs on must not be heard any more. */
  isOpen(): boolean;
}

/** Until when a round must have ended. */
export interface RoundLimit {
  readonly ms: number;
  /** Called when the time is over; gives why the round failed. */
  expire(): unknown;
}

/** How a handler itself ended. */
export type Outcome<T> = { readonly done: T } | { readonly failed: unknown };

/**
 * Runs a handler as one linear function over any number of rounds: recorded steps and answers return at once, the first
 * unanswered question ends the round (2026-07-28, multi-round-trip requests). Entries are found by key, never by position, so
 * `Promise.all` and reordering are safe. Changes the journal to what the next round starts from.
 * @param open what the round starts from; asked for when the handler first asks or takes a step, which most never do
 * @param limit when its time is over, the round has failed, whatever the handler or one of its steps still does
 */
export async function runLinear<T>(
  open: () => Round,
  handler: (linear: Linear) => T | Promise<T>,
  limit?: RoundLimit,
): Promise<Ended<T>> {
  const call = { over: false };
  let loop: Loop | undefined;
  let late: { readonly failed: unknown } | undefined;
  let leaveBehind: () => void = () => undefined;
  let giveUp: (late: { readonly failed: unknown }) => void = () => undefined;
  const takeBack =
    limit &&
    deadline(limit.ms, () => {
      call.over = true; // what it does from here on is nobody's any more
      late = { failed: limit.expire() };
      giveUp(late);
    });
  const opened = (): Loop => {
    loop ??= createLoop(open(), call, () => leaveBehind());
    return loop;
  };
  const linear: Linear = {
    ask: (prepare) => opened().ask(prepare),
    step: (key, fn) => opened().step(key, fn),
    leave: () => opened().leave(),
    isOpen: () => !call.over,
  };
  try {
    const outcome = await new Promise<Outcome<T> | undefined>((resolve) => {
      giveUp = resolve;
      leaveBehind = () => resolve(undefined);
      run(handler, linear).then(
        (done) => resolve({ done }),
        (failed: unknown) => resolve({ failed }),
      );
    });
    if (late) return late;
    if (loop) {
      // its steps may take as long as the handler itself
      const ends = new Promise<Ended<T>>((resolve) => {
        giveUp = resolve;
      });
      return await Promise.race([(loop as Loop).end(outcome), ends]); // made in a function the compiler does not follow
    }
    call.over = true;
    return outcome ?? { failed: new Suspension("none") }; // left behind only by a loop: handled above
  } finally {
    takeBack?.();
  }
}

/** What the handler throws at once is a failure like any other. */
async function run<T>(handler: (linear: Linear) => T | Promise<T>, linear: Linear): Promise<T> {
  return handler(linear);
}
