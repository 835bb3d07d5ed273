import { STATUS_CODES } from "node:http";
import type { Dispatcher } from "undici";
import { eventReader } from "./event-reader.ts";
import { readBody } from "./unreadable.ts";

/** The part of an HTTP answer that comes first. */
export interface Head {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** What `ask` needs to know about one request. */
export interface AskOptions {
  readonly dispatcher: Dispatcher;
  readonly url: URL;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
  readonly signal: AbortSignal | undefined;
  /** Bytes that one answer, or one event of a stream, may have. */
  readonly limit: number;
  /** The error of an answer that is larger. */
  readonly tooLarge: () => Error;
  /** Told when the answer is an event stream, before it is handed out. */
  readonly onStreamStart: () => void;
  /** Told when an event stream ends, with the reason where it did not end well. */
  readonly onStreamEnd: (error: unknown) => void;
  /** Told when the request goes out, on a socket that is open. */
  readonly onSent?: (() => void) | undefined;
}

/** An answer as far as the SDK looks at one: cheaper than a `Response`, which is only made for streams. */
class PlainAnswer {
  readonly status: number;
  readonly ok: boolean;
  readonly statusText: string;
  readonly type = "basic";
  readonly redirected = false;
  readonly url: string;
  readonly headers: { get(name: string): string | null; has(name: string): boolean };
  readonly #text: Promise<string>;

  constructor({ status, headers }: Head, url: string, text: Promise<string>) {
    this.status = status;
    this.ok = status >= 200 && status < 300;
    this.statusText = STATUS_CODES[status] ?? "";
    this.url = url;
    const get = (name: string) => {
      const value = headers[name.toLowerCase()];
      return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
    };
    this.headers = { get, has: (name) => get(name) !== null };
    this.#text = text;
  }

  get body(): ReadableStream<Uint8Array> | null {
    return new ReadableStream({
      start: async (controller) => {
        try {
          controller.enqueue(new TextEncoder().encode(await this.#text));
          controller.close();
        } catch (error) {
          controller.error(error);
        }
      },
    });
  }

  text(): Promise<string> {
    return this.#text;
  }

  async json(): Promise<unknown> {
    return readBody(await this.#text);
  }
}

function isStream({ status, headers }: Head): boolean {
  const type = headers["content-type"];
  return status === 200 && typeof type === "string" && type.toLowerCase().startsWith("text/event-stream");
}

/** Where the bytes of an answer go; `false` from `data` says that it became too large. */
interface Sink {
  readonly answer: Response;
  data(chunk: Buffer): boolean;
  end(): void;
  fail(error: unknown): void;
}

function textSink(head: Head, options: AskOptions): Sink {
  const chunks: Buffer[] = [];
  let size = 0;
  let resolve: (text: string) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const text = new Promise<string>((...settle) => {
    [resolve, reject] = settle;
  });
  text.catch(() => {}); // who reads it, learns of it
  return {
    // the SDK reads status, ok, statusText, type, url, headers.get and has, body, text and json: all there
    answer: new PlainAnswer(head, options.url.href, text) as unknown as Response,
    data: (chunk) => {
      chunks.push(chunk);
      size += chunk.length;
      return size <= options.limit;
    },
    end: () => resolve((chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks)).toString()),
    fail: reject,
  };
}

function streamSink(head: Head, options: AskOptions, flow: Dispatcher.DispatchController): Sink {
  const reader = eventReader(options.limit);
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let over = false;
  const finish = (error: unknown, end: () => void) => {
    if (over) return;
    over = true;
    end();
    options.onStreamEnd(error);
  };
  const body = new ReadableStream<Uint8Array>({
    start: (own) => {
      controller = own;
    },
    pull: () => flow.resume(),
    cancel: (reason) => {
      over = true;
      options.onStreamEnd(reason);
      flow.abort(reason instanceof Error ? reason : new Error("the stream was left"));
    },
  });
  const headers = new Headers();
  for (const [name, value] of Object.entries(head.headers)) {
    for (const one of Array.isArray(value) ? value : [value ?? ""]) headers.append(name, one);
  }
  return {
    answer: new Response(body, { status: head.status, headers }),
    data: (chunk) => {
      // the parser hands out nothing when it is resumed: pausing for that would never end
      if (over || !controller || chunk.length === 0) return true;
      const events = reader.take(chunk);
      if (!events) return false;
      for (const event of events) controller.enqueue(event);
      if ((controller.desiredSize ?? 0) <= 0) flow.pause();
      return true;
    },
    end: () =>
      finish(undefined, () => {
        controller?.enqueue(reader.rest());
        controller?.close();
      }),
    fail: (error) => finish(error, () => controller?.error(error)),
  };
}

/** Sends one HTTP request; resolves when the head of the answer is there. Redirects are answers like others. */
export function ask(options: AskOptions): Promise<{ head: Head; answer: Response }> {
  const { dispatcher, url, method, headers, body, signal } = options;
  return new Promise((resolve, reject) => {
    let sink: Sink | undefined;
    let flow: Dispatcher.DispatchController | undefined;
    const onAbort = () => {
      if (flow) flow.abort(signal?.reason);
      else reject(signal?.reason); // still waiting for a connection
    };
    if (signal?.aborted) return reject(signal.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    const done = () => signal?.removeEventListener("abort", onAbort);
    const fail = (error: unknown) => {
      done();
      if (sink) sink.fail(error);
      else reject(error);
    };
    const path = url.pathname + url.search;
    dispatcher.dispatch(
      { origin: url.origin, path, method, headers, body: body ?? null },
      {
        onRequestStart: (controller) => {
          flow = controller;
          if (signal?.aborted) onAbort();
          else options.onSent?.();
        },
        onResponseStart: (controller, status, answered) => {
          if (status < 200) return;
          const head: Head = { status, headers: answered };
          if (Number(answered["content-length"] ?? 0) > options.limit) return controller.abort(options.tooLarge());
          if (isStream(head)) options.onStreamStart();
          sink = isStream(head) ? streamSink(head, options, controller) : textSink(head, options);
          resolve({ head, answer: sink.answer });
        },
        onResponseData: (controller, chunk) => {
          if (sink?.data(chunk) === false) controller.abort(options.tooLarge());
        },
        onResponseEnd: () => {
          done();
          sink?.end();
        },
        onResponseError: (_, error) => fail(error),
      },
    );
  });
}
