import type { IncomingMessage } from "node:http";
import type { LoggingLevel } from "@modelcontextprotocol/server";
import type { Era } from "@tenon/core";
import type { Caller, ClientDescription, Exchange } from "../context.ts";
import { LEVELS } from "./envelope.ts";
import type { Recognised } from "./recognise.ts";
import type { Reply } from "./reply.ts";

/** A recognised request as the dispatcher sees it. Web headers and the signal are made when a handler asks for them. */
export class FastExchange implements Exchange {
  readonly era: Era;
  readonly requestId: string | number;
  readonly sessionId: string | undefined;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly caller: Caller | undefined = undefined;
  readonly client: ClientDescription;
  readonly requestState: string | undefined;
  readonly inputResponses: Readonly<Record<string, unknown>> | undefined;
  readonly #reply: Reply;
  readonly #request: IncomingMessage;
  readonly #level: LoggingLevel | undefined;
  #headers: Headers | undefined;

  /** @param sessionId the legacy session it belongs to */
  constructor(known: Recognised, reply: Reply, request: IncomingMessage, sessionId: string | undefined) {
    this.era = known.era;
    this.requestId = known.id;
    this.sessionId = sessionId;
    this.meta = known.meta;
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

  get headers(): Headers {
    if (!this.#headers) {
      this.#headers = new Headers();
      for (const [name, values] of Object.entries(this.#request.headersDistinct)) {
        for (const value of values ?? []) this.#headers.append(name, value);
      }
    }
    return this.#headers;
  }

  notify(method: string, params: Record<string, unknown>): Promise<void> {
    return this.#reply.notify(method, params);
  }

  async log(level: LoggingLevel, data: unknown, logger?: string): Promise<void> {
    if (this.#level === undefined || LEVELS.indexOf(level) < LEVELS.indexOf(this.#level)) return;
    await this.#reply.notify("notifications/message", { level, data, ...(logger !== undefined && { logger }) });
  }
}
