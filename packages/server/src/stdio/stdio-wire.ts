import { PassThrough, type Writable } from "node:stream";
import { isJSONRPCRequest, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { Service } from "../dispatch/dispatch.ts";
import { readMessage } from "../dispatch/params.ts";
import type { LineAnswerer } from "../fast/stdio.ts";
import { createTaskListens, type TaskListens } from "./task-listens.ts";

/** Longer lines go straight to the protocol layer. */
const MAX_SHORT_BYTES = 1024 * 1024;
/** Longer lines are refused, one by one: the protocol layer, which holds no more than this, would end the connection. */
const MAX_LINE_BYTES = 10 * 1024 * 1024;
/** Bytes at both ends of a refused line that are kept to find out whose it was. */
const END_BYTES = 512;
const NEWLINE = 10;
const INVALID_REQUEST = -32600;

const ID = String.raw`"id"\s*:\s*(\d{1,15}|"[^"\\]{1,255}")`;
/** A request up to its method, with its id when it comes before that. */
const REQUEST_HEAD = new RegExp(String.raw`^\s*\{\s*(?:(?:"jsonrpc"\s*:\s*"2\.0"|${ID})\s*,\s*)*"method"\s*:`);
/** The id as the last key of a message but for `jsonrpc`. */
const ID_AT_END = new RegExp(String.raw`[,{]\s*${ID}\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`);

/** The id of a request of which only both ends are known, where it stands in one of them; nothing else has one. */
function requestId(head: string, tail: string): string | number | undefined {
  const begins = REQUEST_HEAD.exec(head);
  const id = begins && (begins[1] ?? ID_AT_END.exec(tail)?.[1]);
  return id ? (JSON.parse(id) as string | number) : undefined; // by the expression
}

/**
 * Standard input and output as a transport that survives the end of the input: the SDK's own closes at once, and the answers
 * of calls that still run would be lost. Lines that the answerer takes never reach the SDK.
 */
export class StdioWire implements Transport {
  onmessage?: (message: JSONRPCMessage) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  /** The client closed its end: no more requests will come. */
  readonly ended: Promise<void>;
  readonly #input = new PassThrough();
  readonly #inner: StdioServerTransport;
  readonly #answerer: LineAnswerer;
  readonly #listens: TaskListens;
  /** The beginning of a line whose end has not come. */
  #parts: Buffer[] = [];
  #size = 0;
  /** The two ends of a line that is too long, while the rest of it is dropped. */
  #tooLong: { readonly head: string; tail: Buffer } | undefined;
  readonly #running = new Set<string | number>();
  /** Requests to the client that it has not answered: questions of the legacy era. */
  readonly #asked = new Set<string | number>();
  readonly #waiting = new Set<() => void>();

  /** @param service what subscriptions tell of besides what the protocol layer knows */
  constructor(stdout: Writable, answerer: LineAnswerer, service: Pick<Service, "tasks" | "log">) {
    this.#answerer = answerer;
    const failed = (error: unknown): void => this.onerror?.(error as Error); // streams fail with errors
    this.#listens = createTaskListens(service, {
      send: (message) => void this.#inner.send(message).catch(failed),
      pass: (message) => this.onmessage?.(message),
    });
    process.stdin.on("data", this.#split);
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

  async send(given: JSONRPCMessage): Promise<void> {
    const message = this.#listens.outgoing(given);
    if (isJSONRPCRequest(message)) this.#asked.add(message.id);
    try {
      await this.#inner.send(message);
    } finally {
      this.#sent(message);
    }
  }

  /** Whether or not it arrived: a client that left waits for nothing. */
  #sent(message: JSONRPCMessage): void {
    if ("id" in message && !("method" in message) && message.id !== undefined) this.#finished(message.id);
  }

  async close(): Promise<void> {
    process.stdin.off("data", this.#split).pause();
    this.#answerer.close();
    this.#listens.close();
    await this.#inner.close();
  }

  /** Resolves when every request has its answer, at the latest after `graceMs`. */
  async idle(graceMs: number): Promise<void> {
    // the last lines of the input are still on their way through the buffer
    await new Promise((resolve) => setImmediate(resolve));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    const answered = new Promise<void>((resolve) => {
      if (this.#running.size === 0) resolve();
      else this.#waiting.add(resolve);
    });
    await Promise.race([late, Promise.all([answered, this.#answerer.idle()])]);
    clearTimeout(timer);
  }

  readonly #split = (chunk: Buffer): void => {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      this.#line(chunk.subarray(from, end + 1));
      from = end + 1;
    }
    if (from < chunk.length) this.#add(chunk.subarray(from));
  };

  /** Adds a piece of a line, or of one that is too long only what a refusal needs. */
  #add(piece: Buffer): void {
    this.#parts.push(piece);
    this.#size += piece.length;
    if (!this.#tooLong && this.#size <= MAX_LINE_BYTES) return;
    const all = this.#takeParts();
    const before = this.#tooLong?.tail ?? Buffer.alloc(0);
    // a copy: a view would keep the whole line
    const tail = Buffer.from(Buffer.concat([before, all.subarray(-END_BYTES)]).subarray(-END_BYTES));
    this.#tooLong = { head: this.#tooLong?.head ?? all.toString("latin1", 0, END_BYTES), tail };
  }

  /** @param end the last piece of a line */
  #line(end: Buffer): void {
    if (this.#tooLong || this.#size + end.length > MAX_LINE_BYTES) {
      this.#add(end);
      this.#refuse();
      return;
    }
    const line = this.#parts.length === 0 ? end : Buffer.concat([this.#takeParts(), end]);
    if (line.length > MAX_SHORT_BYTES || !this.#answerer.take(line)) this.#pass(line);
  }

  /** Answers a line that is too long, so that its sender does not wait for ever. */
  #refuse(): void {
    const { head = "", tail } = this.#tooLong ?? {};
    this.#tooLong = undefined;
    const message = `The message is larger than ${MAX_LINE_BYTES} bytes`;
    const id = requestId(head, tail?.toString("latin1") ?? "");
    this.onerror?.(new Error(message));
    if (id === undefined) return; // nobody waits for an answer to it
    this.#inner
      .send({ jsonrpc: "2.0", id, error: { code: INVALID_REQUEST, message } })
      .catch((error: unknown) => this.onerror?.(error as Error)); // streams fail with errors
  }

  #takeParts(): Buffer {
    this.#size = 0;
    return Buffer.concat(this.#parts.splice(0));
  }

  #pass(bytes: Buffer): void {
    if (this.#input.write(bytes)) return;
    process.stdin.pause();
    this.#input.once("drain", () => process.stdin.resume());
  }

  #receive(given: JSONRPCMessage): void {
    const read = readMessage(given);
    if ("refusal" in read) {
      this.#inner.send(read.refusal).catch((error: unknown) => this.onerror?.(error as Error)); // streams fail with errors
      return;
    }
    const { message } = read;
    if (this.#listens.take(message)) return;
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
