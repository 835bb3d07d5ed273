import type { IncomingMessage } from "node:http";
import type { LoggingLevel } from "@modelcontextprotocol/server";
import type { Era } from "@tenon/core";
import { LOG_LEVELS } from "@tenon/core/internal";
import { CREDENTIAL_HEADERS } from "../auth/bearer.ts";
import type { AcceptedContext } from "../contract/contract.ts";
import type { Caller, ClientDescription, Exchange } from "../handler/context.ts";
import { remoteAddressOf } from "../http/remote-address.ts";
import type { Recognised } from "./recognise.ts";

/** Bytes that may wait for a slow reader before progress and log messages are dropped. */
export const MAX_WAITING = 1024 * 1024;

/** What a request needs of the way its answer takes. */
export interface ReplyChannel {
  /** Fires when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Sends a notification of this request; resolves when the reader has kept up. */
  notify(method: string, params: Record<string, unknown>): Promise<void>;
}

/** A recognised request as the dispatcher sees it. Web headers and the signal are made when a handler asks for them. */
export class FastExchange implements Exchange {
  readonly era: Era;
  readonly requestId: string | number;
  readonly sessionId: string | undefined;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly caller: Caller | undefined;
  readonly client: ClientDescription;
  readonly requestState: string | undefined;
  readonly inputResponses: Readonly<Record<string, unknown>> | undefined;
  accepted: AcceptedContext | undefined;
  readonly #reply: ReplyChannel;
  readonly #request: IncomingMessage | undefined;
  readonly #level: LoggingLevel | undefined;
  #headers: Headers | undefined;

  /**
   * @param sessionId the legacy session it belongs to
   * @param request what carried it over HTTP
   * @param caller from its token
   */
  constructor(
    known: Recognised,
    reply: ReplyChannel,
    sessionId?: string | undefined,
    request?: IncomingMessage | undefined,
    caller?: Caller | undefined,
  ) {
    this.era = known.era;
    this.requestId = known.id;
    this.sessionId = sessionId;
    this.meta = known.meta;
    this.caller = caller;
    this.client = known.client;
    this.requestState = known.requestState;
    this.inputResponses = known.inputResponses;
    this.#reply = reply;
    this.#request = request;
    this.#level = known.logLevel;
  }

  get signal(): AbortSignal {
    return this.#reply.signal;
  }

  get headers(): Headers | undefined {
    if (this.#request && !this.#headers) {
      this.#headers = new Headers();
      for (const [name, values] of Object.entries(this.#request.headersDistinct)) {
        if (this.caller && CREDENTIAL_HEADERS.includes(name)) continue;
        for (const value of values ?? []) this.#headers.append(name, value);
      }
    }
    return this.#headers;
  }

  get remoteAddress(): string | undefined {
    return remoteAddressOf(this.#request);
  }

  notify(method: string, params: Record<string, unknown>): Promise<void> {
    return this.#reply.notify(method, params);
  }

  async log(level: LoggingLevel, data: unknown, logger?: string): Promise<void> {
    if (this.#level === undefined || LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(this.#level)) return;
    await this.#reply.notify("notifications/message", { level, data, ...(logger !== undefined && { logger }) });
  }
}
