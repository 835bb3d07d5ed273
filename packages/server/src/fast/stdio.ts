import type { Writable } from "node:stream";
import type { Implementation } from "@modelcontextprotocol/server";
import { isRecord } from "@tenon/core";
import type { Service } from "../dispatch/dispatch.ts";
import { offers } from "../dispatch/protocol.ts";
import { parseBody } from "../http/body.ts";
import { FastExchange, MAX_WAITING, type ReplyChannel } from "./exchange.ts";
import { LazyAbort } from "./lazy-abort.ts";
import { createAnswering, type Outcome } from "./outcome.ts";
import { recogniseLine } from "./recognise.ts";

/** The answer to one request on standard output. Once cancelled or answered it is silent. */
class LineReply implements ReplyChannel {
  readonly #id: string;
  readonly #stdout: Writable;
  #over = false;
  readonly #abort = new LazyAbort();

  constructor(id: string | number, stdout: Writable) {
    this.#id = JSON.stringify(id);
    this.#stdout = stdout;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  async notify(method: string, params: Record<string, unknown>): Promise<void> {
    if (this.#over || this.#stdout.writableLength > MAX_WAITING) return;
    await this.#write(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  /** Resolves when the line is written. */
  async end(outcome: Outcome): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    const [name, json] =
      "json" in outcome ? ["result", outcome.json.toString()] : ["error", JSON.stringify(outcome.error)];
    await this.#write(`{"jsonrpc":"2.0","id":${this.#id},"${name}":${json}}`);
  }

  /** The client takes its request back: it gets no answer (2026-07-28, cancellation). */
  cancel(): void {
    this.#over = true;
    this.#abort.abort();
  }

  /** A reader that has left is reported by the stream's own error event, which ends the connection. */
  #write(line: string): Promise<void> {
    return new Promise((resolve) => this.#stdout.write(`${line}\n`, () => resolve()));
  }
}

/** Takes the lines it can answer; all others belong to the protocol layer. */
export interface LineAnswerer {
  /** @returns whether the line was for us */
  take(line: Buffer): boolean;
  /** Resolves when nothing runs. */
  idle(): Promise<void>;
  /** Cancels what runs. */
  close(): void;
}

/**
 * Answers plain, well-formed modern requests on standard input from the dispatcher, as the fast listener does over HTTP. A client
 * that says `initialize` speaks the older era from then on, and every line of it goes to the protocol layer.
 */
export function createLineAnswerer(service: Service, identity: Implementation, stdout: Writable): LineAnswerer {
  const outcomeOf = createAnswering(service, identity);
  const running = new Map<string | number, { reply: LineReply; done: Promise<void> }>();
  let legacy = false;

  function cancelled(params: unknown): boolean {
    const id = isRecord(params) ? params.requestId : undefined;
    const entry = typeof id === "string" || typeof id === "number" ? running.get(id) : undefined;
    entry?.reply.cancel();
    return entry !== undefined;
  }

  return {
    take(line) {
      if (legacy) return false;
      const parsed = parseBody(line.toString());
      if (!("value" in parsed) || !isRecord(parsed.value)) return false;
      const message = parsed.value;
      if (message.method === "initialize") legacy = true;
      if (message.method === "notifications/cancelled") return cancelled(message.params);
      const known = recogniseLine(message);
      // an id that is in use already: the protocol layer knows what that means
      if (!known || running.has(known.id) || !offers(service.registry, known.method)) return false;
      const reply = new LineReply(known.id, stdout);
      const done = outcomeOf(known, new FastExchange(known, reply))
        .then((outcome) => reply.end(outcome))
        .finally(() => running.delete(known.id));
      running.set(known.id, { reply, done });
      return true;
    },
    async idle() {
      await Promise.all([...running.values()].map(({ done }) => done));
    },
    close() {
      for (const { reply } of running.values()) reply.cancel();
    },
  };
}
