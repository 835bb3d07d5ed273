import {
  type ClientCapabilities,
  type CreateMessageRequestParams,
  type CreateMessageResult,
  type CreateMessageResultWithTools,
  type InputRequest,
  inputRequired,
  type Root,
  specTypeSchemas,
} from "@modelcontextprotocol/server";
import { type Era, isRecord, type Json, type JsonObject } from "@tenon/core";
import { checkOptions, digest, isSchema } from "@tenon/core/internal";
import { type Ability, missingCapability } from "../dispatch/capabilities.ts";
import type { QuestionKind } from "../handler/journal.ts";
import type { Linear } from "../handler/linear.ts";
import type { Pages } from "./pages.ts";
import { type Answer, type AnswerOf, compileShape, type Shape } from "./question.ts";

/** One question of {@link LinearContext.elicitAll}: a shape, whose message is then its name, or both. */
export type NamedQuestion = Shape | { readonly message: string; readonly shape: Shape };

/** The answers to several questions by name. */
export type AnswersOf<Q> = {
  [K in keyof Q]: Q[K] extends { readonly message: string; readonly shape: infer S extends Shape }
    ? Answer<AnswerOf<S>>
    : Answer<AnswerOf<Q[K]>>;
};

/** The part of a handler's context that makes it linear across rounds, restarts and replicas. */
export interface LinearContext {
  /**
   * Asks the person behind the client and waits for the answer. On 2026-07-28 the call ends here and the handler runs again
   * from the top when the answer arrives, so anything with an effect belongs in {@link step}.
   *
   * @param shape a flat object schema, a scalar schema, `["a", "b"]`, `{ a: "Title" }` or `multi([…])`
   * @param options.key names the question, once per run; needed only when its message changes between rounds
   * @throws ConfigError `code: "shape"` naming a field that a form cannot ask for, `code: "secret_field"` for one it must not,
   * `code: "question_key"` when the key was used before in this run
   * @example const answer = await ctx.elicit("Refund 500?", ["confirm", "cancel"])
   */
  elicit<const S extends Shape>(message: string, shape: S, options?: { key?: string }): Promise<Answer<AnswerOf<S>>>;
  /**
   * Asks several questions in one round.
   * @example const { size, gift } = await ctx.elicitAll({ size: ["S", "M"], gift: { message: "Gift wrap?", shape: z.boolean() } })
   */
  elicitAll<const Q extends Readonly<Record<string, NamedQuestion>>>(questions: Q): Promise<AnswersOf<Q>>;
  /**
   * Sends the person to a page, for what must not travel through the client (passwords, cards, third-party sign-in), and waits
   * until the page reports the end with `server.completeElicitation(id, …)`.
   *
   * @param url https, or http on loopback, without credentials; as a function it gets the id that the page must report
   * @returns accepted with the data of the completion, declined or cancelled
   * @throws ConfigError `code: "url"`
   * @example await ctx.elicitUrl("Sign in to the bank", (id) => `https://pay.example/start?id=${id}`)
   */
  elicitUrl(
    message: string,
    url: string | URL | ((id: string) => string | URL),
    options?: { key?: string },
  ): Promise<Answer<Json>>;
  /**
   * Runs `fn` once per call, however often the handler is run again; later runs get the recorded result. The result must be
   * JSON (a Date comes back as a string, in the first run too). What `fn` throws passes through and is not recorded: the same
   * step may be tried again, and is when the handler runs again.
   *
   * @param key unique within the handler
   * @param fn receives an idempotency key for the world outside, the same on every run of this call; it must not ask
   * @throws ConfigError `code: "step_key"` when the key was used before in this run, `code: "step_asks"` when `fn` asks
   */
  step<T>(key: string, fn: (idempotencyKey: string) => T | Promise<T>): Promise<T>;
  /**
   * Lets the client's model complete messages.
   * @deprecated in 2026-07-28; earliest removal 2027-07-28. Call a model provider from the server instead.
   */
  sample(
    params: CreateMessageRequestParams,
    options?: { key?: string },
  ): Promise<CreateMessageResult | CreateMessageResultWithTools>;
  /**
   * The directories the client works in.
   * @deprecated in 2026-07-28; earliest removal 2027-07-28. Take paths as arguments or options instead.
   */
  roots(options?: { key?: string }): Promise<readonly Root[]>;
}

/** The client a question goes to. */
export interface Peer {
  readonly era: Era;
  readonly capabilities: Readonly<ClientCapabilities>;
  /** Made when a page is first asked for. */
  pages(): Pages;
}

/** A promise whose failure the handler may look at later, or never: a question not awaited must not end the process. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

function actionOf(given: JsonObject): "accept" | "decline" | "cancel" | undefined {
  const { action } = given;
  return action === "accept" || action === "decline" || action === "cancel" ? action : undefined;
}

/**
 * What counts of a client's answer to this kind of question, or undefined when it is none; the content is judged by the
 * handler's shape. The rest of it is left out, so that equal answers are equal.
 */
export function readAnswer(given: unknown, kind: QuestionKind): JsonObject | undefined {
  if (!isRecord(given)) return undefined;
  const answer = given as JsonObject; // it came out of JSON
  if (kind === "sample" || kind === "roots") return answer;
  const action = actionOf(answer);
  if (action === undefined) return undefined;
  if (action !== "accept" || kind === "url") return { action };
  return isRecord(answer.content) ? { action, content: answer.content } : undefined;
}

/** The key a question is given, if any. */
function keyOf(options: { key?: string }, where: string): string | undefined {
  checkOptions(options, ["key"], `ctx.${where}`);
  return options.key;
}

/** What a handler may ask, over the two primitives of a round. */
export function createAsking(linear: Linear, peer: Peer): LinearContext {
  const refusal = (kind: Ability): Error | undefined => missingCapability(kind, peer.capabilities, peer.era);

  function elicit<const S extends Shape>(message: string, shape: S, options: { key?: string } = {}) {
    return linear.ask<Answer<AnswerOf<S>>>(() => {
      const compiled = compileShape(shape);
      return {
        kind: "form",
        key: keyOf(options, "elicit(message, shape, options)"),
        print: digest([message, compiled.schema]),
        refusal: refusal("form"),
        // compileShape made it within the restricted schema
        request: () => inputRequired.elicit({ message, requestedSchema: compiled.schema as never }),
        async read(given) {
          const action = actionOf(given);
          if (action === undefined) return undefined;
          if (action !== "accept") return { answer: { action } };
          const result = await compiled.read(given.content);
          // read() checked the content against the shape that S is the type of
          return "data" in result ? { answer: { action, data: result.data as AnswerOf<S> } } : undefined;
        },
      };
    });
  }

  return {
    elicit,
    step: (key, fn) => linear.step(key, fn),
    elicitAll<const Q extends Readonly<Record<string, NamedQuestion>>>(questions: Q) {
      const asked = Object.entries(questions).map(async ([name, question]) => {
        const both = !isSchema(question) && "shape" in question && typeof question.shape !== "string";
        const { message, shape } = both
          ? (question as { message: string; shape: Shape }) // titled choices have only strings as values
          : { message: name, shape: question as Shape }; // the other member of NamedQuestion
        return [name, await elicit(message, shape)] as const;
      });
      return quiet(Promise.all(asked).then((answers) => Object.fromEntries(answers) as AnswersOf<Q>)); // one by each name
    },
    elicitUrl(message, url, options = {}) {
      return linear.ask<Answer<Json>>(() => ({
        kind: "url",
        key: keyOf(options, "elicitUrl(message, url, options)"),
        print: digest(["url", message]),
        refusal: refusal("url"),
        async request(key) {
          const page = await peer.pages().open(key, url);
          return {
            method: "elicitation/create",
            params: {
              mode: "url",
              message,
              url: page.href,
              // 2026-07-28 has no such field; 2025-11-25 cannot do without
              ...(peer.era === "legacy" && { elicitationId: page.id }),
            },
          } as InputRequest; // the two eras' shapes of one request
        },
        async read(given, key) {
          const action = actionOf(given);
          if (action === undefined) return undefined;
          if (action !== "accept") return { answer: { action } };
          // "accept" says that the person went there; what counts is that the page says they are done
          const completed = await peer.pages().completed(key);
          return completed && { answer: { action, data: completed.data } };
        },
      }));
    },
    sample(params, options = {}) {
      const withTools = params.tools !== undefined || params.toolChoice !== undefined;
      const schema = withTools ? specTypeSchemas.CreateMessageResultWithTools : specTypeSchemas.CreateMessageResult;
      return linear.ask<CreateMessageResult | CreateMessageResultWithTools>(() => ({
        kind: "sample",
        key: keyOf(options, "sample(params, options)"),
        print: digest(["sample", params]),
        refusal: refusal(withTools ? "tools" : "sample"),
        request: () => inputRequired.createMessage(params),
        async read(given) {
          const result = await schema["~standard"].validate(given);
          return result.issues ? undefined : { answer: result.value };
        },
      }));
    },
    roots(options = {}) {
      return linear.ask<readonly Root[]>(() => ({
        kind: "roots",
        key: keyOf(options, "roots(options)"),
        print: digest(["roots"]),
        refusal: refusal("roots"),
        request: () => inputRequired.listRoots(),
        async read(given) {
          const result = await specTypeSchemas.ListRootsResult["~standard"].validate(given);
          return result.issues ? undefined : { answer: result.value.roots };
        },
      }));
    },
  };
}
