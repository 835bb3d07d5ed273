import { isRecord, type Json, type JsonObject } from "@tenon/core";

/** What a question asks for: a form, a visit to a page, a model's completion, the client's roots. */
export type QuestionKind = "form" | "url" | "sample" | "roots";

/** A question that went out: an answer is taken only for the same question. */
export interface Asked {
  readonly kind: QuestionKind;
  /** Fingerprint of message and shape. */
  readonly print: string;
}

/** A valid answer, as it came, to the question with this fingerprint. */
interface Answered {
  readonly print: string;
  readonly answer: JsonObject;
}

/** The result of a step: undefined is an empty list, since JSON has no undefined. */
export type StepResult = readonly [Json] | readonly [];

/** What a call remembers between its rounds. It travels sealed through the client, or lies in the store when it is large. */
export interface Journal {
  /** Names the whole call over all its rounds: what steps derive their idempotency keys from. */
  readonly call: string;
  /** Key of the record that repeats the newest outcome to whoever repeats the call under the same idempotency key. */
  readonly record: string | undefined;
  readonly steps: Map<string, StepResult>;
  /** Answers of finished rounds by question key. */
  readonly answers: Map<string, Answered>;
  /** Questions of the open round: only they may be answered. */
  asked: Map<string, Asked>;
  /** Valid answers to some of the open round's questions, while others are missing. */
  given: Map<string, JsonObject>;
  /** Elicitation ids by question key, for questions that are answered on a page. */
  readonly urls: Map<string, string>;
}

/** The journal of a call that begins. */
export function emptyJournal(call: string, record?: string): Journal {
  return {
    call,
    record,
    steps: new Map(),
    answers: new Map(),
    asked: new Map(),
    given: new Map(),
    urls: new Map(),
  };
}

/** The journal as JSON: pairs instead of objects, so that a key named `__proto__` is a key like any other. */
export function packJournal(journal: Journal): JsonObject {
  const pairs = (map: ReadonlyMap<string, unknown>): Json => [...map] as unknown as Json; // every value type above is JSON
  return {
    call: journal.call,
    ...(journal.record !== undefined && { record: journal.record }),
    steps: pairs(journal.steps),
    answers: pairs(journal.answers),
    asked: pairs(journal.asked),
    given: pairs(journal.given),
    urls: pairs(journal.urls),
  };
}

/**
 * The journal `packJournal` made.
 * @param packed authenticated: it came out of our seal or our store
 */
export function unpackJournal(packed: unknown): Journal | undefined {
  if (!isRecord(packed) || typeof packed.call !== "string") return undefined;
  const map = <V>(pairs: unknown): Map<string, V> => new Map((pairs ?? []) as [string, V][]); // packJournal wrote them
  return {
    call: packed.call,
    record: typeof packed.record === "string" ? packed.record : undefined,
    steps: map(packed.steps),
    answers: map(packed.answers),
    asked: map(packed.asked),
    given: map(packed.given),
    urls: map(packed.urls),
  };
}
