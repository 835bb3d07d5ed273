import {
  type ClientCapabilities,
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
import type { ToolContext } from "../handler/context.ts";
import type { QuestionKind } from "../handler/journal.ts";
import type { Linear } from "../handler/linear.ts";
import type { Pages } from "./pages.ts";
import { type Answer, type AnswerOf, type AnswerTo, compileShape, type NamedQuestion, type Shape } from "./question.ts";

/** The part of a handler's context that makes it linear across rounds, restarts and replicas. */
export type LinearContext = Pick<ToolContext, "elicit" | "elicitAll" | "elicitUrl" | "step" | "sample" | "roots">;

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
      return quiet(
        Promise.all(asked).then((answers) => Object.fromEntries(answers) as { [K in keyof Q]: AnswerTo<Q[K]> }),
      ); // one by each name
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
