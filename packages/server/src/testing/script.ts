import { isRecord, type JsonObject, TenonError } from "@tenon/core";

/** A test is not set up for what the server did: a question without an answer, or one that never fits. */
export class TestError extends TenonError {}

/** A question the server asked. */
export interface Question {
  /** Its key in the round; undefined on 2025-11-25, where keys are not on the wire. */
  readonly key: string | undefined;
  readonly message: string;
  readonly mode: "form" | "url";
  /** The restricted schema of a form. */
  readonly schema: JsonObject;
  /** Where a url question sends the person. */
  readonly url: string | undefined;
  /** How often the same message has been asked in this call, from 1. */
  readonly times: number;
}

type Value = string | number | boolean | readonly string[];

/**
 * An answer: the value of a question with one field, the values of a form, or what the person did instead. `true` accepts a
 * url question.
 */
export type ScriptedAnswer =
  | Value
  | Readonly<Record<string, Value>>
  | { readonly action: "accept"; readonly content?: Readonly<Record<string, Value>> }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

/** Answers by message or key, or a function that sees the question; undefined means that the test has no answer. */
export type Script =
  | Readonly<Record<string, ScriptedAnswer>>
  | ((question: Question) => ScriptedAnswer | undefined | Promise<ScriptedAnswer | undefined>);

/** What goes over the wire as `ElicitResult`. */
interface WireAnswer {
  action: "accept" | "decline" | "cancel";
  content?: Record<string, unknown>;
}

/** Far above what a test means, low enough to end a loop of refused answers. */
const MAX_TIMES = 20;

function describe({ message, key }: Question): string {
  return `"${message}"${key === undefined ? "" : ` (key ${key})`}`;
}

function wireAnswer(answer: ScriptedAnswer, question: Question): WireAnswer {
  if (isRecord(answer)) {
    const { action, content }: Record<string, unknown> = answer;
    if (action === "decline" || action === "cancel") return { action };
    if (action === "accept") return { action, ...(isRecord(content) && { content }) };
    return { action: "accept", content: answer };
  }
  if (question.mode === "url") {
    if (answer === true) return { action: "accept" };
    throw new TestError(
      `The question ${describe(question)} opens a url: answer true, { action: "decline" } or { action: "cancel" }`,
      { code: "wrong_answer" },
    );
  }
  const fields = Object.keys(isRecord(question.schema.properties) ? question.schema.properties : {});
  const [only] = fields;
  if (only === undefined || fields.length > 1) {
    throw new TestError(
      `The question ${describe(question)} has the fields ${fields.join(", ") || "(none)"}; answer with an object, not ${JSON.stringify(answer)}`,
      { code: "wrong_answer" },
    );
  }
  return { action: "accept", content: { [only]: answer } };
}

/** Answers the questions of one call and remembers all of them. */
export interface Answerer {
  /** @throws TestError `code: "unanswered_question"` naming the question */
  answer(params: Record<string, unknown>, key: string | undefined): Promise<WireAnswer>;
}

/** @param asked receives every question */
export function answerer(script: Script | undefined, asked: Question[]): Answerer {
  const times = new Map<string, number>();
  return {
    async answer(params, key) {
      const message = String(params.message);
      const count = (times.get(message) ?? 0) + 1;
      times.set(message, count);
      const question: Question = {
        key,
        message,
        mode: params.mode === "url" ? "url" : "form",
        schema: isRecord(params.requestedSchema) ? (params.requestedSchema as JsonObject) : {}, // it came as JSON
        url: typeof params.url === "string" ? params.url : undefined,
        times: count,
      };
      asked.push(question);
      if (count > MAX_TIMES) {
        throw new TestError(
          `The question ${describe(question)} was asked ${count} times: the answer of the test does not fit its shape ${JSON.stringify(question.schema)}`,
          { code: "too_many_rounds" },
        );
      }
      const given =
        typeof script === "function"
          ? await script(question)
          : script && Object.hasOwn(script, message)
            ? script[message]
            : key !== undefined && script && Object.hasOwn(script, key)
              ? script[key]
              : undefined;
      if (given === undefined) {
        throw new TestError(
          `The server asked ${describe(question)} and the test has no answer; give connect(server, { elicit: { ${JSON.stringify(message)}: … } })`,
          { code: "unanswered_question", data: { message, ...(key !== undefined && { key }) } },
        );
      }
      return wireAnswer(given, question);
    },
  };
}
