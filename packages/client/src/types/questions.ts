import type { CreateMessageRequest, CreateMessageResult, Root } from "@modelcontextprotocol/client";
import type { JsonObject } from "@tenon/core";
import type { FieldProblem } from "../question/field-values.ts";
import type { UrlHost } from "../trust/types.ts";
import type { EventSource } from "./events.ts";

/** One entry of a form, parsed from the restricted schema of an elicitation. */
export type Field =
  | ({
      kind: "text";
      minLength?: number;
      maxLength?: number;
      pattern?: string;
      format?: string;
      default?: string;
    } & FieldBase)
  | ({ kind: "number"; integer: boolean; minimum?: number; maximum?: number; default?: number } & FieldBase)
  | ({ kind: "boolean"; default?: boolean } & FieldBase)
  | ({ kind: "choice"; options: readonly FieldOption[]; default?: string } & FieldBase)
  | ({
      kind: "choices";
      options: readonly FieldOption[];
      minItems?: number;
      maxItems?: number;
      default?: readonly string[];
    } & FieldBase);

interface FieldBase {
  /** Key of the answer's content. */
  name: string;
  title?: string;
  description?: string;
  required: boolean;
}

export interface FieldOption {
  readonly value: string;
  readonly title: string;
}

/** One thing that is wrong with an answer. */
export interface AnswerProblem {
  /** The entry it is about; absent when the answer as a whole is wrong. */
  readonly field?: string;
  /** In English: what was expected and what was given, ready to stand behind the field's name. */
  readonly message: string;
  /** The same for a program that says it in its own words. */
  readonly problem?: FieldProblem;
  readonly given?: unknown;
}

/** That a question is asked again, and why. */
interface AskedAgain {
  /** 2 when it is asked a second time, then 3; absent the first time. */
  readonly attempt?: number;
  /** What was wrong with the answer before; absent the first time. */
  readonly problems?: readonly AnswerProblem[];
}

/** A question a server asks the person. */
export type ElicitationRequest =
  | ({
      /** `form` wants values, `url` sends the person to a page. */
      readonly mode: "form";
      /** What the server asks, in its own words. */
      readonly message: string;
      /** The entries of the form, ready to be shown. */
      readonly fields: readonly Field[];
      /** The same as the server's JSON Schema. */
      readonly schema: JsonObject;
    } & AskedAgain)
  | ({
      readonly mode: "url";
      readonly message: string;
      /** Checked: https, or http on this machine; no credentials; an expected host. Never fetched by the client. */
      readonly url: string;
      /** The site behind the address, as a person should see it. */
      readonly host: UrlHost;
      /** The server's name for the question, on the older revision. */
      readonly elicitationId?: string;
    } & AskedAgain);

/** A person's answer. `content` is absent for url questions. */
export type ElicitationAnswer =
  | { readonly action: "accept"; readonly content?: Readonly<Record<string, string | number | boolean | string[]>> }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

/** Answers a question of a server: shows it to the person and returns what they say. `source.signal` fires when the answer is not wanted any more. */
export type ElicitationHandler = (
  request: ElicitationRequest,
  source: EventSource & { readonly signal: AbortSignal },
) => Promise<ElicitationAnswer> | ElicitationAnswer;

/**
 * A server wants a model to answer.
 * @deprecated by the protocol; for peers that still use it. Earliest removal 2027-07-28.
 */
export type SamplingRequest = CreateMessageRequest["params"];

/**
 * What the model said.
 * @deprecated by the protocol; earliest removal 2027-07-28.
 */
export type SamplingAnswer = CreateMessageResult;

/**
 * Lets a model answer. A function alone is also the approval: ask the person in it, and throw to refuse.
 * @deprecated by the protocol; earliest removal 2027-07-28.
 */
export type SamplingHandler = (
  request: SamplingRequest,
  source: EventSource & { readonly signal: AbortSignal },
) => Promise<SamplingAnswer> | SamplingAnswer;

/**
 * Sampling with the person's approval as a step of its own; anything but true refuses.
 * @deprecated by the protocol; earliest removal 2027-07-28.
 */
export interface ApprovedSampling {
  approve: (
    request: SamplingRequest,
    source: EventSource & { readonly signal: AbortSignal },
  ) => Promise<boolean> | boolean;
  handler: SamplingHandler;
}

/**
 * The directories a server may work in, as `file://` addresses: a list, or a function asked each time.
 * @deprecated by the protocol; earliest removal 2027-07-28.
 */
export type Roots = readonly Root[] | ((source: EventSource) => Promise<readonly Root[]> | readonly Root[]);
