import { type InputRequiredResult, inputRequired } from "@modelcontextprotocol/server";
import { ConfigError, digest, isRecord, type Json, type JsonObject, TenonError, toJson } from "@tenon/core";
import { Suspension } from "./errors.ts";
import { type Answer, type AnswerOf, compileShape, type Shape } from "./question.ts";
import type { Seal } from "./seal.ts";

/** What a suspended call remembers between its rounds. Plain JSON: it travels sealed through the client. */
interface JournalState {
  /** Results of finished steps by key. `null` inside the array would be ambiguous, so undefined is an empty array. */
  steps: Record<string, [Json] | []>;
  /** Valid answers by question key, with the fingerprint of what was asked. */
  answers: Record<string, { print: string; answer: JsonObject }>;
  /** Keys that were asked in the last round: only they may be answered. */
  asked: string[];
}

/** The part of a handler's context that makes it linear across rounds, restarts and replicas. */
export interface LinearContext {
  /**
   * Asks the person behind the client and waits for the answer. On 2026-07-28 the call ends here and the handler runs again
   * from the top when the answer arrives, so anything with an effect belongs in {@link step}.
   *
   * @param shape a flat object schema, a scalar schema, `["a", "b"]`, `{ a: "Title" }` or `multi([…])`
   * @param options.key names the question; needed only when its message changes between rounds
   * @throws ConfigError `code: "shape"` naming a field that a form cannot ask for
   * @example const answer = await ctx.elicit("Refund 500?", ["confirm", "cancel"])
   */
  elicit<const S extends Shape>(message: string, shape: S, options?: { key?: string }): Promise<Answer<AnswerOf<S>>>;
  /**
   * Runs `fn` once per call, however often the handler is run again; later runs get the recorded result. The result must be
   * JSON (a Date comes back as a string, in the first run too).
   *
   * @param key unique within the handler
   * @param fn receives an idempotency key for the world outside, the same on every run of this call
   * @throws ConfigError `code: "step_key"` when the key was used before in this run
   */
  step<T>(key: string, fn: (idempotencyKey: string) => T | Promise<T>): Promise<T>;
}

/** What one round of a call starts from. */
export interface Round {
  seal: Seal;
  /** Caller, method, name and arguments: a state opens only for the same. */
  binding: unknown;
  requestState?: string | undefined;
  inputResponses?: Readonly<Record<string, unknown>> | undefined;
}

const empty = (): JournalState => ({ steps: {}, answers: {}, asked: [] });

async function open(round: Round): Promise<JournalState> {
  if (round.requestState === undefined) return empty();
  return (await round.seal.open(round.requestState, round.binding)) as JournalState; // authenticated: we wrote it
}

/**
 * Runs a handler as one linear function over any number of rounds: recorded steps and answers return at once, the first
 * unanswered question ends the round with `input_required` (2026-07-28, multi-round-trip requests). Entries are found by
 * key, never by position, so `Promise.all` and reordering are safe.
 */
export async function runLinear<T>(
  round: Round,
  handler: (context: LinearContext) => T | Promise<T>,
): Promise<{ done: T } | { suspended: InputRequiredResult }> {
  const state = await open(round);
  const responses = round.inputResponses ?? {};
  const questions = new Map<string, { message: string; schema: JsonObject }>();
  const ordinals = new Map<string, number>();
  const used = new Set<string>();
  const running = new Set<Promise<unknown>>();
  let identity: string | undefined; // most calls have no step, and hashing their arguments costs more than the rest

  async function answerTo(key: string, print: string, read: ReturnType<typeof compileShape>["read"]) {
    const known = Object.hasOwn(state.answers, key) ? state.answers[key] : undefined;
    if (known && known.print !== print) {
      throw new TenonError(
        `The question "${key}" is not the one that was answered: its message or shape changed between two rounds of the call. ` +
          "Give questions that may change a key of their own",
        { code: "question_changed", data: { key } },
      );
    }
    const given =
      known?.answer ?? (state.asked.includes(key) && Object.hasOwn(responses, key) ? responses[key] : undefined);
    if (!isRecord(given)) return undefined;
    if (given.action === "decline" || given.action === "cancel") return { action: given.action };
    if (given.action !== "accept") return undefined;
    const result = await read(given.content);
    return "data" in result ? { action: "accept" as const, data: result.data, content: given.content } : undefined;
  }

  const context: LinearContext = {
    async elicit<const S extends Shape>(message: string, shape: S, options: { key?: string } = {}) {
      const compiled = compileShape(shape);
      const print = digest([message, compiled.schema]);
      const ordinal = ordinals.get(print) ?? 0;
      ordinals.set(print, ordinal + 1);
      const key = options.key ?? `q_${print.slice(0, 10)}_${ordinal}`;
      const answer = await answerTo(key, print, compiled.read);
      if (answer === undefined) {
        questions.set(key, { message, schema: compiled.schema });
        throw new Suspension(key);
      }
      const { action } = answer;
      state.answers[key] = {
        print,
        answer: action === "accept" ? { action, content: toJson(answer.content) } : { action },
      };
      // read() checked the content against the shape that S is the type of
      return (action === "accept" ? { action, data: answer.data } : { action }) as Answer<AnswerOf<S>>;
    },
    async step<T>(key: string, fn: (idempotencyKey: string) => T | Promise<T>) {
      if (questions.size > 0) throw new Suspension([...questions.keys()].join(", "));
      if (used.has(key)) {
        throw new ConfigError(`ctx.step: the key "${key}" was used twice in one run; give each step its own key`, {
          code: "step_key",
          data: { key },
        });
      }
      used.add(key);
      const recorded = Object.hasOwn(state.steps, key) ? state.steps[key] : undefined;
      if (recorded) return recorded[0] as T; // recorded by the same step: the same type after JSON
      const work = (async () => {
        identity ??= digest(round.binding);
        const value = await fn(digest([identity, key]));
        const result: [Json] | [] = value === undefined ? [] : [toJson(value, `result of step "${key}"`)];
        Object.defineProperty(state.steps, key, {
          value: result,
          enumerable: true,
          configurable: true,
          writable: true,
        });
        return result[0] as T; // what later runs will see
      })();
      running.add(work);
      try {
        return await work;
      } finally {
        running.delete(work);
      }
    },
  };

  let outcome: { done: T } | { failed: unknown };
  try {
    outcome = { done: await handler(context) };
  } catch (error) {
    outcome = { failed: error };
  }
  // a step that still runs beside the question must be recorded, or it would run again
  await Promise.allSettled(running);
  // once suspended, suspension wins, whatever a catch made of it
  if (questions.size > 0) {
    state.asked = [...questions.keys()];
    return {
      suspended: inputRequired({
        inputRequests: Object.fromEntries(
          [...questions].map(([key, { message, schema }]) => [
            key,
            // compileShape made it within the restricted schema
            inputRequired.elicit({ message, requestedSchema: schema as never }),
          ]),
        ),
        requestState: await round.seal.close(state, round.binding),
      }),
    };
  }
  if ("failed" in outcome) throw outcome.failed;
  return outcome;
}
