import type { RequestId } from "@modelcontextprotocol/server";
import { isRecord } from "@tenon/core";
import { hasScope } from "../definition/scopes.ts";
import type { Caller } from "../handler/context.ts";

/** What is wrong with messages that a token sends into a session. */
type CallRefusal =
  /** A request with the id of one that still runs: the answers of both would go to whoever came last. */
  | { readonly kind: "id in use"; readonly id: RequestId }
  /** It speaks of a call that was made with more scopes than its own token has. */
  | { readonly kind: "narrower"; readonly needed: readonly string[] };

/** The calls of one legacy session that still run, with the scopes of the tokens they were made with. */
export interface SessionCalls {
  /** All scopes that requests of the session were made with. */
  readonly used: ReadonlySet<string>;
  /**
   * Looks at messages before the protocol layer does, and notes the requests among them.
   * @param body one message or a batch, as unchecked as it came
   */
  receive(body: unknown, caller: Caller | undefined): CallRefusal | undefined;
  /** Forgets what {@link receive} noted: the protocol layer did not take it. */
  refused(body: unknown): void;
  /** Notes what goes out: questions of a call, and its end. */
  sent(message: unknown, call: RequestId | undefined): void;
}

/** Whether a caller has every one of some scopes. */
export const hasAll = (caller: Caller | undefined, scopes: Iterable<string>): boolean =>
  [...scopes].every((scope) => hasScope(caller, scope));

const isId = (value: unknown): value is RequestId => typeof value === "string" || typeof value === "number";
const listOf = (body: unknown): readonly unknown[] => (Array.isArray(body) ? body : [body]);

/**
 * In one session may be tokens of one caller with different scopes: one for reading in a dashboard, one that may pay. The call of
 * a wider one is answered, confirmed and cancelled by tokens that have its scopes, and by no other.
 */
export function createSessionCalls(): SessionCalls {
  const running = new Map<RequestId, readonly string[]>();
  /** The call that each open question belongs to. */
  const questions = new Map<RequestId, RequestId>();
  const used = new Set<string>();

  /** Of an answer or a cancellation, the call it is about. */
  const callOf = (message: Record<string, unknown>): RequestId | undefined => {
    if (message.method === "notifications/cancelled") {
      const id = isRecord(message.params) ? message.params.requestId : undefined;
      return isId(id) ? id : undefined;
    }
    return message.method === undefined && isId(message.id) ? questions.get(message.id) : undefined;
  };
  const end = (call: RequestId): void => {
    running.delete(call);
    for (const [question, of] of questions) if (of === call) questions.delete(question);
  };

  return {
    used,
    receive(body, caller) {
      const requests: RequestId[] = [];
      const over: RequestId[] = [];
      for (const message of listOf(body)) {
        if (!isRecord(message)) continue;
        const call = callOf(message);
        const needed = call === undefined ? undefined : running.get(call);
        if (needed && !hasAll(caller, needed)) return { kind: "narrower", needed };
        if (call !== undefined && message.method !== undefined) over.push(call);
        if (typeof message.method !== "string" || !isId(message.id)) continue;
        if (running.has(message.id) || requests.includes(message.id)) return { kind: "id in use", id: message.id };
        requests.push(message.id);
      }
      for (const call of over) end(call); // a cancelled call is not answered any more
      for (const id of requests) running.set(id, caller?.scopes ?? []);
      if (requests.length > 0) for (const scope of caller?.scopes ?? []) used.add(scope);
      return undefined;
    },
    refused(body) {
      for (const message of listOf(body)) {
        if (isRecord(message) && typeof message.method === "string" && isId(message.id)) end(message.id);
      }
    },
    sent(message, call) {
      if (!isRecord(message) || !isId(message.id)) return;
      if (message.method === undefined) end(message.id);
      else if (call !== undefined) questions.set(message.id, call);
    },
  };
}
