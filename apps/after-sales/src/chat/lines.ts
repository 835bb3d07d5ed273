import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

/** Where a conversation reads a person's lines from, and writes to: a terminal or a pipe. */
export interface Lines {
  /** True when a person types at a terminal. */
  readonly interactive: boolean;
  /** The next line without its end; undefined at the end of the input or when `signal` fires. */
  next(prompt: string, signal: AbortSignal): Promise<string | undefined>;
  write(text: string): void;
  close(): void;
}

/** More unread lines than this pause the input. */
const QUEUE = 64;
/** A piped line is shown beside its prompt, so that a transcript can be read; a long one in part. */
const ECHO = 500;

/**
 * @param onInterrupt Ctrl-C at a terminal, which reads it as a key and raises no signal
 */
export function openLines(input: Readable & { isTTY?: boolean }, output: Writable, onInterrupt: () => void): Lines {
  const interactive = input.isTTY === true;
  const reader = createInterface({ input, output: interactive ? output : undefined, terminal: interactive });
  const queue: string[] = [];
  let ended = false;
  let waiting: ((line: string | undefined) => void) | undefined;

  const deliver = (line: string | undefined): void => {
    const resolve = waiting;
    waiting = undefined;
    resolve?.(line);
  };
  reader.on("line", (line) => {
    if (waiting) return deliver(line);
    queue.push(line);
    if (queue.length >= QUEUE) reader.pause();
  });
  reader.on("close", () => {
    ended = true;
    deliver(undefined);
  });
  reader.on("SIGINT", onInterrupt);

  return {
    interactive,
    async next(prompt, signal) {
      if (signal.aborted) return undefined;
      if (interactive) {
        reader.setPrompt(prompt);
        reader.prompt();
      } else output.write(prompt);
      const line =
        queue.shift() ??
        (ended
          ? undefined
          : await new Promise<string | undefined>((resolve) => {
              const cancel = (): void => deliver(undefined);
              waiting = (value) => {
                signal.removeEventListener("abort", cancel);
                resolve(value);
              };
              signal.addEventListener("abort", cancel, { once: true });
              reader.resume();
            }));
      if (!interactive)
        output.write(`${line === undefined ? "" : line.length > ECHO ? `${line.slice(0, ECHO)}…` : line}\n`);
      return line;
    },
    write: (text) => void output.write(text),
    close: () => reader.close(),
  };
}

/** Text of servers and models without control characters, so that none of it can steer the terminal. */
export function clean(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
}
