import type {
  JSONRPCMessage,
  JSONRPCNotification,
  MessageExtraInfo,
  Transport,
  TransportSendOptions,
} from "@modelcontextprotocol/client";
import { isRecord, type TenonError } from "@tenon/core";
import { type Asked, noteAnswer, noteThrown, withAsked } from "../contract/asked.ts";
import { currentExchange, type Exchange, withExchange } from "./exchange.ts";

/** The exchange over HTTP ended without an answer: an event stream that closed, or a 202. */
export class StreamEndedError extends Error {
  /** What was wrong with an event of the stream, where one could not be read: most likely that was the answer. */
  readonly unreadable: string | undefined;

  constructor(unreadable?: string) {
    super("the response ended without an answer");
    this.name = "StreamEndedError";
    this.unreadable = unreadable;
  }
}

interface Pending {
  readonly method: string;
  readonly exchange: Exchange | undefined;
  answered: boolean;
}

/** Where answers that are no plain lists have what the SDK looks for. */
const CONTENTS: Record<string, string> = {
  "tools/call": "content",
  "prompts/get": "messages",
  "resources/read": "contents",
  "resources/templates/list": "resourceTemplates",
};

/**
 * A valid stand-in for an answer that is read raw; errors and questions still go through the SDK's checks. An answer without
 * `resultType` is a complete one (the revision says so; the SDK refuses it).
 */
function standIn(method: string): Record<string, unknown> {
  const key = CONTENTS[method] ?? method.split("/")[0] ?? method;
  return { resultType: "complete", ttlMs: 0, cacheScope: "private", [key]: [] };
}

/** The older revision knows no extensions: its handshake declares none. */
function asDeclared(message: JSONRPCMessage): JSONRPCMessage {
  if (!("method" in message) || message.method !== "initialize" || !isRecord(message.params?.capabilities))
    return message;
  const { extensions: _modern, ...capabilities } = message.params.capabilities;
  return { ...message, params: { ...message.params, capabilities } };
}

/**
 * Wraps any transport of the SDK and adds what the SDK lacks: a request whose HTTP response ends without an answer fails
 * at once instead of waiting for its timeout, and the answers of chosen methods are kept raw for element-wise checks.
 */
export class TapTransport implements Transport {
  onclose: (() => void) | undefined = undefined;
  onerror: ((error: Error) => void) | undefined = undefined;
  // the SDK's interface declares the callback generic
  onmessage: (<T extends JSONRPCMessage>(message: T, extra?: MessageExtraInfo) => void) | undefined = undefined;
  readonly #inner: Transport;
  readonly #pending = new Map<string | number, Pending>();
  readonly #asked: Asked | undefined;

  /** @param asked what the request that opens the connection asks for */
  constructor(inner: Transport, asked?: Asked) {
    this.#inner = inner;
    this.#asked = asked;
    inner.onmessage = (message, extra) => this.onmessage?.(this.#receive(message), extra);
    inner.onerror = (error) => {
      const exchange = currentExchange();
      if (exchange && error instanceof SyntaxError) exchange.unreadable = error.message;
      else if (exchange && error.name === "ZodError") exchange.unreadable = "it is no message of the protocol";
      this.onerror?.(error);
    };
    inner.onclose = () => this.onclose?.();
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  get hasPerRequestStream(): boolean {
    return this.#inner.hasPerRequestStream === true;
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion?.(version);
  }

  setSupportedProtocolVersions(versions: string[]): void {
    this.#inner.setSupportedProtocolVersions?.(versions);
  }

  async send(given: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const message = withAsked(this.#asked, asDeclared(given));
    if (!("method" in message)) return this.#inner.send(message, options);
    if (!("id" in message)) {
      const exchange = this.#exchangeOf(message);
      // who obeys it never answers, and what comes all the same is for nobody
      if (message.method === "notifications/cancelled") this.#forget(message.params?.requestId);
      return withExchange(exchange, () => this.#inner.send(message, options));
    }
    const exchange = currentExchange();
    const pending: Pending = { method: message.method, exchange, answered: false };
    this.#pending.set(message.id, pending);
    const forget = () => this.#forget(message.id);
    options?.requestSignal?.addEventListener("abort", forget, { once: true });
    if (exchange) exchange.streaming = undefined;
    let streamEnded = () => {};
    const ended = new Promise<void>((resolve) => {
      streamEnded = resolve;
    });
    const onRequestStreamEnd = () => {
      options?.onRequestStreamEnd?.();
      streamEnded();
    };
    try {
      await this.#inner.send(message, { ...options, onRequestStreamEnd });
      if (!this.hasPerRequestStream || exchange === undefined || pending.answered) return;
      // a transport that is not ours does not tell; then only the end of its stream counts
      if (exchange.streaming !== false) await ended;
      if (!pending.answered) throw new StreamEndedError(exchange.unreadable);
    } catch (error) {
      forget();
      noteThrown(this.#asked, message.method, error);
      throw error;
    }
  }

  /** Ends the request with this id by an error of ours; the connection goes on. */
  fail(id: string | number, error: TenonError): void {
    const exchange = this.#pending.get(id)?.exchange;
    if (exchange) exchange.failure = error;
    const message = { jsonrpc: "2.0" as const, id, error: { code: -32_603, message: error.message } };
    this.onmessage?.(this.#receive(message));
  }

  #forget(id: unknown): void {
    if (typeof id === "string" || typeof id === "number") this.#pending.delete(id);
  }

  /** A cancellation goes out with the headers of its request, whoever's code caused it; other notifications with none. */
  #exchangeOf(notification: JSONRPCNotification): Exchange {
    const id = notification.method === "notifications/cancelled" ? notification.params?.requestId : undefined;
    const known =
      typeof id === "string" || typeof id === "number" ? this.#pending.get(id)?.exchange?.headers : undefined;
    return known ? { headers: known } : {};
  }

  #progress(message: { method: string; params?: Record<string, unknown> | undefined }): void {
    if (message.method !== "notifications/progress" || !message.params) return;
    const { progressToken: id, progress, total, message: text } = message.params;
    // the SDK uses a request's id as its token
    const pending = typeof id === "string" || typeof id === "number" ? this.#pending.get(id) : undefined;
    if (typeof progress !== "number") return;
    pending?.exchange?.onProgress?.({
      progress,
      ...(typeof total === "number" && { total }),
      ...(typeof text === "string" && { message: text }),
    });
  }

  #receive<T extends JSONRPCMessage>(message: T): T {
    if ("method" in message) this.#progress(message);
    if ("method" in message || !("id" in message) || message.id === undefined) return message;
    const pending = this.#pending.get(message.id);
    if (!pending) return message;
    this.#pending.delete(message.id);
    pending.answered = true;
    noteAnswer(this.#asked, pending.method, message);
    const { exchange, method } = pending;
    if (!exchange || exchange.rawMethod !== method || !("result" in message) || !isRecord(message.result))
      return message;
    const raw: Record<string, unknown> = message.result;
    const task = exchange.mayBeTask && raw.resultType === "task";
    if (raw.resultType !== undefined && raw.resultType !== "complete" && !task) return message;
    exchange.raw = raw;
    return { ...message, result: standIn(method) };
  }
}

/** The same around a child process; `pid` and `stderr` are how the SDK recognises one (it then probes for the era in place). */
export class ChildTapTransport extends TapTransport {
  readonly #child: { readonly pid: number | null; readonly stderr: unknown };

  constructor(inner: Transport & { readonly pid: number | null; readonly stderr: unknown }, asked?: Asked) {
    super(inner, asked);
    this.#child = inner;
  }

  get pid(): number | null {
    return this.#child.pid;
  }

  get stderr(): unknown {
    return this.#child.stderr;
  }
}
