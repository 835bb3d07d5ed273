import { PassThrough, type Writable } from "node:stream";
import { isJSONRPCRequest, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { readMessage } from "./params.ts";

/**
 * Standard input and output as a transport that survives the end of the input: the SDK's own closes at once, and the answers
 * of calls that still run would be lost.
 */
export class StdioWire implements Transport {
  onmessage?: (message: JSONRPCMessage) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  /** The client closed its end: no more requests will come. */
  readonly ended: Promise<void>;
  readonly #input = new PassThrough();
  readonly #inner: StdioServerTransport;
  readonly #running = new Set<string | number>();
  /** Requests to the client that it has not answered: questions of the legacy era. */
  readonly #asked = new Set<string | number>();
  readonly #waiting = new Set<() => void>();

  constructor(stdout: Writable) {
    process.stdin.pipe(this.#input, { end: false });
    this.#inner = new StdioServerTransport(this.#input, stdout);
    this.ended = new Promise((resolve) => {
      process.stdin
        .once("end", resolve)
        .once("close", resolve)
        .once("error", () => resolve());
      this.#inner.onclose = () => {
        resolve();
        this.onclose?.();
      };
    });
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onmessage = (message) => this.#receive(message);
    void this.ended.then(() => this.#nobodyAnswers());
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (isJSONRPCRequest(message)) this.#asked.add(message.id);
    await this.#inner.send(message);
    if ("id" in message && !("method" in message) && message.id !== undefined) this.#finished(message.id);
  }

  async close(): Promise<void> {
    process.stdin.unpipe(this.#input).pause();
    await this.#inner.close();
  }

  /** Resolves when every request has its answer, at the latest after `graceMs`. */
  async idle(graceMs: number): Promise<void> {
    // the last lines of the input are still on their way through the buffer
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, graceMs);
      this.#waiting.add(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #receive(given: JSONRPCMessage): void {
    const read = readMessage(given);
    if ("refusal" in read) {
      this.#inner.send(read.refusal).catch((error: unknown) => this.onerror?.(error as Error)); // streams fail with errors
      return;
    }
    const { message } = read;
    // a subscription is open by design: nobody waits for its end
    if (isJSONRPCRequest(message) && message.method !== "subscriptions/listen") this.#running.add(message.id);
    if (!("method" in message) && message.id !== undefined) this.#asked.delete(message.id);
    this.onmessage?.(message);
    if ("method" in message && message.method === "notifications/cancelled") {
      // a cancelled request gets no answer
      const id = message.params?.requestId;
      if (typeof id === "string" || typeof id === "number") this.#finished(id);
    }
  }

  /** A question whose client has left fails at once, so that its call can end. */
  #nobodyAnswers(): void {
    for (const id of this.#asked) {
      this.onmessage?.({ jsonrpc: "2.0", id, error: { code: -32000, message: "The client closed its end" } });
    }
    this.#asked.clear();
  }

  #finished(id: string | number): void {
    this.#running.delete(id);
    if (this.#running.size > 0) return;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}
