import { AsyncLocalStorage } from "node:async_hooks";
import type { Progress, StandardSchemaV1 } from "@modelcontextprotocol/client";
import { isRecord, type TenonError } from "@tenon/core";
import type { CallDriver } from "../types/calls.ts";
import type { ClientEvents, EventSource } from "../types/events.ts";
import type { Deadline } from "./deadline.ts";

/** A tool call that is on the wire now. */
export interface ActiveCall {
  readonly source: EventSource;
  readonly deadline: Deadline;
  readonly onLog: ClientEvents["onLog"];
  /** Whether it may be sent again; each time it says so counts. */
  readonly mayRepeat: () => boolean;
  /** Whether another replica can be asked: a busy one is not waited for then. */
  readonly impatient?: boolean;
  /** Answers what a server of the older revision asks inside the call. */
  readonly pushed?: CallDriver["pushed"];
}

/**
 * What one request carries beside the message. The SDK has no place for it, so it travels with the asynchronous context:
 * the transport and the notification handlers read it back.
 */
export interface Exchange {
  readonly call?: ActiveCall;
  /** Headers of this request only. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Method whose answer is taken raw, because the SDK's check of a whole answer would lose it for one bad element. */
  readonly rawMethod?: string;
  /** The answer may be a task as well; it is taken raw too. */
  readonly mayBeTask?: boolean;
  /**
   * Progress of this request. Taken from the wire directly: the SDK looks for its handler one step too late and loses
   * what arrives together with the answer.
   */
  readonly onProgress?: (progress: Progress) => void;
  /** Only listens: it must not hold the process open. */
  readonly listening?: boolean;
  /** Why the exchange fails, where the SDK would say less. */
  failure?: TenonError;
  /** What was wrong with the last event of its stream that could not be read. */
  unreadable?: string;
  /** The raw answer, once it came. */
  raw?: Record<string, unknown>;
  /** Whether the answer to the present POST is an event stream; unknown where the transport is not ours. */
  streaming?: boolean | undefined;
}

/**
 * For answers that are taken raw and checked by whoever asked. Named in a request, it also spares the SDK from trying its own
 * schema out once per request, a twentieth of a call.
 */
export const ANY_RESULT: StandardSchemaV1<unknown, Record<string, unknown>> = {
  "~standard": {
    version: 1,
    vendor: "tenon",
    validate: (value) => (isRecord(value) ? { value } : { issues: [{ message: "the result is not an object" }] }),
  },
};

const storage = new AsyncLocalStorage<Exchange>();

/**
 * Runs `work` as one exchange. Every request starts its own, so what an outer call carries (its headers above all) never
 * reaches a request made from inside one of its handlers.
 */
export function withExchange<T>(exchange: Exchange, work: () => T): T {
  return storage.run(exchange, work);
}

/** The exchange that the running code belongs to. */
export function currentExchange(): Exchange | undefined {
  return storage.getStore();
}
