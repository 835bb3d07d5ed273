import type { ServerResponse } from "node:http";
import { MAX_WAITING, type ReplyChannel } from "./exchange.ts";
import { LazyAbort } from "./lazy-abort.ts";

/** Comment lines keep proxies from cutting a stream that is silent for long. */
const KEEP_ALIVE_MS = 15_000;

const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  connection: "keep-alive",
  "x-accel-buffering": "no",
};

/**
 * The answer to one request on one response, and nothing else: one JSON body, or a stream of events from the first
 * notification on. Everything it needs to reach the caller is in it, so nothing of another caller can be confused with it,
 * and after the end (or the client's leaving) it is silent.
 */
export class Reply implements ReplyChannel {
  readonly #response: ServerResponse;
  readonly #id: string;
  #streaming = false;
  #over = false;
  readonly #abort = new LazyAbort();
  #keepAlive: NodeJS.Timeout | undefined;
  #drained: Promise<void> | undefined;

  constructor(response: ServerResponse, id: string | number) {
    this.#response = response;
    this.#id = JSON.stringify(id);
    response.once("close", () => this.#close());
  }

  /** Fires when the client leaves before its answer. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Whether nobody waits any more. */
  get over(): boolean {
    return this.#over;
  }

  /** Sends a notification of this request; resolves when the reader has kept up. */
  async notify(method: string, params: Record<string, unknown>): Promise<void> {
    if (this.#over || this.#response.writableLength > MAX_WAITING) return;
    if (!this.#streaming) this.#open();
    const frame = `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method, params })}\n\n`;
    if (!this.#response.write(frame)) await this.#drain();
  }

  /** @param json the result, serialised; bytes where it is kept */
  result(json: string | Buffer): void {
    const head = `{"jsonrpc":"2.0","id":${this.#id},"result":`;
    if (typeof json === "string" || this.#streaming) this.#end(200, `${head}${json.toString()}}`);
    else this.#endBytes(head, json);
  }

  /** @param status of the answer, unless a stream is open already */
  error(status: number, error: { code: number; message: string; data?: unknown }): void {
    this.#end(status, `{"jsonrpc":"2.0","id":${this.#id},"error":${JSON.stringify(error)}}`);
  }

  #end(status: number, message: string): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#streaming) {
      clearInterval(this.#keepAlive);
      this.#response.end(`event: message\ndata: ${message}\n\n`);
      return;
    }
    this.#response.writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(message),
    });
    this.#response.end(message);
  }

  #endBytes(head: string, json: Buffer): void {
    if (this.#over) return;
    this.#over = true;
    const length = Buffer.byteLength(head) + json.length + 1;
    this.#response.writeHead(200, { "content-type": "application/json", "content-length": length });
    this.#response.write(head);
    this.#response.write(json);
    this.#response.end("}");
  }

  #open(): void {
    this.#streaming = true;
    this.#response.writeHead(200, STREAM_HEADERS);
    this.#keepAlive = setInterval(() => this.#response.write(": keepalive\n\n"), KEEP_ALIVE_MS);
    this.#keepAlive.unref();
  }

  #drain(): Promise<void> {
    this.#drained ??= new Promise((resolve) => {
      const done = (): void => {
        this.#response.off("drain", done).off("close", done);
        this.#drained = undefined;
        resolve();
      };
      this.#response.once("drain", done).once("close", done);
    });
    return this.#drained;
  }

  #close(): void {
    clearInterval(this.#keepAlive);
    if (this.#over) return;
    this.#over = true;
    this.#abort.abort();
  }
}
