import { AsyncLocalStorage } from "node:async_hooks";
import type { Progress } from "@modelcontextprotocol/client";
import type { TenonError } from "@tenon/core";
import type { ClientEvents, EventSource } from "../types.ts";
import type { Deadline } from "./deadline.ts";

/** A tool call that is on the wire now. */
export interface ActiveCall {
  readonly source: EventSource;
  readonly deadline: Deadline;
  readonly onLog: ClientEvents["onLog"];
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
