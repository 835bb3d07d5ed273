import type { ClientCapabilities, LoggingLevel } from "@modelcontextprotocol/server";
import { type Era, type Json, META } from "@tenon/core";
import { toJson } from "@tenon/core/internal";
import type { Notifier } from "../dispatch/notify.ts";
import { type LogLevel, perLevel, type ServerLog } from "../log.ts";
import type { LinearContext } from "../question/asking.ts";
import type { InnerReading } from "./inner.ts";

/** Who makes the request, from a verified token; never from anything the request says about itself. */
export interface Caller {
  /** Who it is: the token's `sub`, or what `subjectClaim` names. */
  readonly subject: string;
  /** The program that calls, where the token says so (`client_id`, `azp`). */
  readonly clientId?: string;
  /** Who vouches for the subject: the same subject at another issuer is another caller. */
  readonly issuer?: string;
  /** Granted by the token, and what the server's `scopeHierarchy` adds; `hasScope` also knows that `orders:*` covers. */
  readonly scopes: readonly string[];
  /** Everything the token says. */
  readonly claims: Readonly<Record<string, unknown>>;
}

/** One request as the dispatcher sees it, whatever transport and era it came by. */
export interface Exchange {
  /** The revision it came by: `modern` is 2026-07-28, `legacy` is 2025-11-25 and older. */
  readonly era: Era;
  /** The request's JSON-RPC id, as its client chose it. */
  readonly requestId: string | number;
  /** The session it belongs to, on the older revision over HTTP. */
  readonly sessionId?: string | undefined;
  /** Fires when the client cancels or disconnects, or the server closes. */
  readonly signal: AbortSignal;
  /** The request's `_meta`. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** HTTP headers of the request; undefined on stdio. */
  readonly headers: Headers | undefined;
  /** Where the request came from, past `http.trustedProxies`; undefined on stdio and where nobody knows (a unix socket). */
  readonly remoteAddress?: string | undefined;
  /** Who calls, by a verified token; undefined where the server has no `auth`, and on stdio. */
  readonly caller: Caller | undefined;
  /** What the client says of itself. */
  readonly client: ClientDescription;
  /** The sealed state a retry carries; the server's own business. */
  readonly requestState?: string | undefined;
  /** The answers a retry carries, by key. */
  readonly inputResponses?: Readonly<Record<string, unknown>> | undefined;
  /** Sends a notification that belongs to this request. */
  notify(method: string, params: Record<string, unknown>): Promise<void>;
  /** Sends a log message at the level the client asked for, or not at all. */
  log(level: LoggingLevel, data: unknown, logger?: string): Promise<void>;
}

/** How the client describes itself: for display and capability checks, never for security. */
export interface ClientDescription {
  /** The program's name. */
  readonly name?: string | undefined;
  /** Its version. */
  readonly version?: string | undefined;
  /** What it says it can do, for example `elicitation`. */
  readonly capabilities: Readonly<ClientCapabilities>;
}

type LogFunction = (data: unknown, options?: { logger?: string; extra?: Record<string, unknown> }) => Promise<void>;

/** What a handler of a tool, resource or prompt gets besides its arguments. */
export interface ToolContext<Lifespan = unknown> extends LinearContext, InnerReading {
  /**
   * Reports progress. Values that do not grow are dropped, bursts are thinned to the newest, and nothing is sent when the
   * caller did not ask for progress.
   * @param done so far, in any unit
   * @param total in the same unit, where it is known
   */
  progress(done: number, total?: number, message?: string): Promise<void>;
  /**
   * Log messages for the client, at the level it asked for; each goes to the server's own log as well. With `extra` the
   * payload travels as `{ msg, extra }`.
   */
  readonly log: Readonly<Record<LogLevel, LogFunction>>;
  /** Fires when the client cancels or disconnects, the server closes, or the handler's `timeoutMs` is over. */
  readonly signal: AbortSignal;
  /** Who calls, by a verified token; undefined where the server has no `auth`, and on stdio. */
  readonly caller: Caller | undefined;
  /** What the client says of itself: for display and capability checks, never for security. */
  readonly client: ClientDescription;
  /** The revision the request came by: `modern` is 2026-07-28, `legacy` is 2025-11-25 and older. */
  readonly era: Era;
  /** The request's JSON-RPC id, as its client chose it. */
  readonly requestId: string | number;
  /** The session it belongs to, on the older revision over HTTP. */
  readonly sessionId: string | undefined;
  /** The request's `_meta` without the protocol's own keys. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** Set by callers that may send the same intended effect twice; record it with the effect. */
  readonly idempotencyKey: string | undefined;
  /** HTTP headers of the request, without credentials where there is a `caller` or the server has `auth`; undefined on stdio. */
  readonly headers: Headers | undefined;
  /** Where the request came from, past `http.trustedProxies`; undefined on stdio and where nobody knows (a unix socket). */
  readonly remoteAddress: string | undefined;
  /** What the server's `lifespan` opened. */
  readonly lifespan: Lifespan;
  /** Tells clients that asked for it that a list or a resource changed. */
  readonly notify: Notifier;
}

/** Progress notifications of one request: strictly increasing, a burst of 20, then one every 50 ms, the newest wins. */
export function progressReporter(exchange: Exchange): { report: ToolContext["progress"]; flush(): Promise<void> } {
  const token = exchange.meta.progressToken;
  const BURST = 20;
  const REFILL_MS = 50;
  let tokens = BURST;
  let refilled = performance.now();
  let last = Number.NEGATIVE_INFINITY;
  let held: Record<string, unknown> | undefined;

  const send = (params: Record<string, unknown>): Promise<void> => {
    held = undefined;
    return exchange.notify("notifications/progress", params).catch(() => undefined); // the client is gone: nothing to tell
  };
  return {
    async report(progress, total, message) {
      if (token === undefined || exchange.signal.aborted) return;
      // an endless or unknown number has no place in JSON, and after infinity nothing grows
      if (!Number.isFinite(progress) || progress <= last) return;
      last = progress;
      const now = performance.now();
      tokens = Math.min(BURST, tokens + (now - refilled) / REFILL_MS);
      refilled = now;
      held = {
        progressToken: token,
        progress,
        ...(total !== undefined && Number.isFinite(total) && { total }),
        ...(message !== undefined && { message }),
      };
      if (tokens < 1) return;
      tokens -= 1;
      await send(held);
    },
    async flush() {
      if (held && !exchange.signal.aborted) await send(held);
    },
  };
}

/** What a context is made of besides its request. */
export interface ContextParts<Lifespan> {
  lifespan: Lifespan;
  log: ServerLog;
  name: string;
  notify: Notifier;
  progress: ToolContext["progress"];
  /** Made when the handler asks for it. */
  inner(): InnerReading;
  /** The signal the handler sees; asked once, when it looks. */
  signal(): AbortSignal;
  /** False once the call was answered: what a handler left behind reports goes nowhere. */
  isOpen(): boolean;
}

/** What JSON can carry of a log message; a log line that nobody awaits must never fail. */
function loggable(data: unknown): Json {
  try {
    return toJson(data, "log data");
  } catch (error) {
    return error instanceof Error ? `(${error.message})` : String(error);
  }
}

/** The context of one run of a handler; what most handlers never look at is made when it is asked for. */
export class RequestContext<Lifespan> implements ToolContext<Lifespan> {
  readonly progress: ToolContext["progress"];
  readonly caller: Caller | undefined;
  readonly client: ClientDescription;
  readonly era: Era;
  readonly requestId: string | number;
  readonly sessionId: string | undefined;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly lifespan: Lifespan;
  readonly notify: Notifier;
  readonly #exchange: Exchange;
  readonly #parts: ContextParts<Lifespan>;
  readonly #asking: () => LinearContext;
  #linear: LinearContext | undefined;
  #log: ToolContext["log"] | undefined;
  #signal: AbortSignal | undefined;

  constructor(exchange: Exchange, asking: () => LinearContext, parts: ContextParts<Lifespan>) {
    this.#asking = asking;
    this.progress = async (...report) => {
      if (parts.isOpen()) await parts.progress(...report);
    };
    this.caller = exchange.caller;
    this.client = exchange.client;
    this.era = exchange.era;
    this.requestId = exchange.requestId;
    this.sessionId = exchange.sessionId;
    this.meta = exchange.meta;
    this.lifespan = parts.lifespan;
    this.notify = parts.notify;
    this.#exchange = exchange;
    this.#parts = parts;
  }

  get #ask(): LinearContext {
    this.#linear ??= this.#asking();
    return this.#linear;
  }

  get elicit(): LinearContext["elicit"] {
    return this.#ask.elicit;
  }

  get elicitAll(): LinearContext["elicitAll"] {
    return this.#ask.elicitAll;
  }

  get elicitUrl(): LinearContext["elicitUrl"] {
    return this.#ask.elicitUrl;
  }

  get step(): LinearContext["step"] {
    return this.#ask.step;
  }

  get sample(): LinearContext["sample"] {
    return this.#ask.sample;
  }

  get roots(): LinearContext["roots"] {
    return this.#ask.roots;
  }

  get readResource(): InnerReading["readResource"] {
    return this.#parts.inner().readResource;
  }

  get getPrompt(): InnerReading["getPrompt"] {
    return this.#parts.inner().getPrompt;
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#parts.signal();
    return this.#signal;
  }

  get headers(): Headers | undefined {
    return this.#exchange.headers;
  }

  get remoteAddress(): string | undefined {
    return this.#exchange.remoteAddress;
  }

  get idempotencyKey(): string | undefined {
    const key = this.meta[META.idempotencyKey];
    return typeof key === "string" && key.length <= 256 ? key : undefined;
  }

  get log(): ToolContext["log"] {
    this.#log ??= perLevel((level) => this.#level(level));
    return this.#log;
  }

  #level(name: LogLevel): LogFunction {
    return async (given, { logger, extra } = {}) => {
      const data = loggable(given);
      this.#parts.log(name, typeof data === "string" ? data : JSON.stringify(data), { of: this.#parts.name, ...extra });
      if (this.#exchange.signal.aborted || !this.#parts.isOpen()) return;
      const payload = extra === undefined ? data : { msg: data, extra: loggable(extra) };
      await this.#exchange.log(name, payload, logger).catch(() => undefined); // the client is gone: the server's log has it
    };
  }
}
