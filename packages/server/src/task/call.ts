import { isRecord, type JsonObject } from "@tenon/core";
import { carriedTrace, currentTrace, type TraceCarrier, toJson } from "@tenon/core/internal";
import type { Contract } from "../contract/contract.ts";
import type { Caller, ClientDescription, Exchange } from "../handler/context.ts";
import { type Journal, packJournal, unpackJournal } from "../handler/journal.ts";

/** What a run of a task starts from: the call that created it. */
export interface TaskCall {
  /** As they came: read anew by the tool's schema in every run, since what a schema makes of them need not be JSON. */
  readonly args: unknown;
  readonly requestId: string | number;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly client: ClientDescription;
  readonly caller: Caller | undefined;
  /** Whether it came over HTTP, where a caller without a token is a stranger; on stdio it is whoever started the process. */
  readonly http: boolean;
  /** The trace the call belonged to, which its runs go on with, wherever they are. */
  readonly trace: TraceCarrier | undefined;
  /** What was answered and done before the call became a task. */
  readonly journal: Journal | undefined;
}

/** The call as it is stored: no headers, no token. @throws JsonError naming a part of the caller's claims that is not JSON */
export function packCall(args: unknown, exchange: Exchange, journal: Journal | undefined): JsonObject {
  const { progressToken: _, ...meta } = exchange.meta;
  const { caller, client } = exchange;
  // of the request's own span, where it has one: what its client sent is the span above that
  const trace = currentTrace() ?? carriedTrace(exchange.meta);
  const call = {
    args: args ?? {},
    requestId: exchange.requestId,
    meta,
    client: { name: client.name, version: client.version, capabilities: client.capabilities },
    ...(caller && {
      caller: {
        subject: caller.subject,
        clientId: caller.clientId,
        issuer: caller.issuer,
        scopes: caller.scopes,
        claims: caller.claims,
      },
    }),
    http: exchange.headers !== undefined,
    ...(trace && { trace }),
    ...(journal && { journal: packJournal(journal) }),
  };
  return toJson(call, "the call") as JsonObject; // an object goes in
}

/** The call {@link packCall} stored. */
export function unpackCall(stored: JsonObject): TaskCall {
  const { args, requestId, meta, client, caller, http, trace, journal } = stored;
  return {
    args,
    requestId: typeof requestId === "number" ? requestId : String(requestId),
    meta: isRecord(meta) ? meta : {},
    // packCall wrote both
    client: client as unknown as ClientDescription,
    caller: isRecord(caller) ? Object.freeze(caller as unknown as Caller) : undefined,
    http: http === true,
    trace: isRecord(trace) ? carriedTrace(trace) : undefined,
    journal: unpackJournal(journal),
  };
}

/**
 * The stored call as the request a handler sees: nobody listens to it, and it has neither headers nor an address.
 * @param contract which accepted the call when it was made
 */
export function exchangeFor(call: TaskCall, signal: AbortSignal, contract: Contract | undefined): Exchange {
  const silent = async (): Promise<void> => undefined;
  return {
    era: "modern",
    requestId: call.requestId,
    signal,
    meta: call.meta,
    // none of them; but a request over HTTP is one also where it is looked at again, for what its handler reads
    headers: call.http ? new Headers() : undefined,
    caller: call.caller,
    client: call.client,
    accepted: contract?.accepted(call.meta),
    notify: silent,
    log: silent,
  };
}
