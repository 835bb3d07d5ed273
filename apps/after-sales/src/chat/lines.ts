import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { clean } from "../clean.ts";

/** Where a conversation reads a person's lines from, and writes to: a terminal or a pipe. */
export interface Lines {
  /** True when a person types at a terminal. */
  readonly interactive: boolean;
  /** The next line without its end; undefined at the end of the input or when `signal` fires. */
  next(prompt: string, signal: AbortSignal): Promise<string | undefined>;
  write(text: string): void;
  /** Says something that nobody waited for; a prompt that is shown is shown again below it. */
  notice(text: string): void;
  close(): void;
}

/** More unread lines than this pause the input. */
const QUEUE = 64;
/** A piped line is shown beside its prompt, so that a transcript can be read; a long one in part. */
const ECHO = 500;
const echo = (line: string): string => clean(line.length > ECHO ? `${line.slice(0, ECHO)}…` : line);

/**
 * @param onInterrupt Ctrl-C at a terminal, where it is read as a key and raises no signal
 */
export function openLines(input: Readable & { isTTY?: boolean }, output: Writable, onInterrupt: () => void): Lines {
  const interactive = input.isTTY === true;
  const reader = createInterface({ input, output: interactive ? output : undefined, terminal: interactive });
  const queue: string[] = [];
  /** Shows the prompt of the line that is waited for. */
  let ask: (() => void) | undefined;
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
      const [gap = "", shown = ""] = /^(\n*)(.*)$/s.exec(prompt)?.slice(1) ?? [];
      output.write(gap);
      ask = () => {
        if (!interactive) return void output.write(shown);
        reader.setPrompt(shown);
        reader.prompt(true);
      };
      ask();
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
      ask = undefined;
      if (!interactive || line === undefined) output.write(`${echo(line ?? "")}\n`);
      return line;
    },
    write: (text) => void output.write(text),
    notice(text) {
      output.write(ask ? `\n${text}\n` : `${text}\n`);
      ask?.();
    },
    close: () => reader.close(),
  };
}
