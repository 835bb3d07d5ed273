import { type Era, type Json, type JsonObject, META } from "@tenon/core";
import { toJson } from "@tenon/core/internal";
import type { Notifier } from "../dispatch/notify.ts";
import { type LogLevel, perLevel, type ServerLog } from "../log.ts";
import type { LinearContext } from "../question/asking.ts";
import type { Caller, ClientDescription, Exchange, LogFunction, ToolContext } from "./context.ts";
import type { InnerReading } from "./inner.ts";

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
  task: ToolContext["task"];
  startTask: ToolContext["startTask"];
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
  readonly task: ToolContext["task"];
  readonly startTask: ToolContext["startTask"];
  readonly caller: Caller | undefined;
  readonly client: ClientDescription;
  readonly era: Era;
  readonly requestId: string | number;
  readonly sessionId: string | undefined;
  readonly context: Readonly<JsonObject> | undefined;
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
    this.task = parts.task;
    this.startTask = parts.startTask;
    this.caller = exchange.caller;
    this.client = exchange.client;
    this.era = exchange.era;
    this.requestId = exchange.requestId;
    this.sessionId = exchange.sessionId ?? exchange.accepted?.session;
    this.context = exchange.accepted?.context;
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
