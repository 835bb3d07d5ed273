import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { cleanText } from "@tenon/core";

/** Where a conversation reads a person's lines from, and writes to: a terminal or a pipe. */
export interface Lines {
  /** True when a person types at a terminal. */
  readonly interactive: boolean;
  /** The next line without its end; undefined at the end of the input or when `signal` fires. One caller at a time. */
  next(prompt: string, signal: AbortSignal): Promise<string | undefined>;
  write(text: string): void;
  /** Says something that nobody waited for; a prompt that is shown is shown again below it. */
  notice(text: string): void;
  /** Lets go of the input. Lines that arrived and were not read wait for whoever opens the same input next. */
  close(): void;
}

/** A terminal's or a pipe's input. */
export type TerminalInput = Readable & { isTTY?: boolean };

/** More unread lines than this pause the input. */
const QUEUE = 64;
/** A piped line is shown beside its prompt, so that a transcript can be read; a long one in part. */
const ECHO = 500;
/** Characters of one line that are kept; what a line has beyond them is dropped. */
const MAX_LINE = 4_000_000;
const echo = (line: string): string => cleanText(line.length > ECHO ? `${line.slice(0, ECHO)}…` : line);

/** What an input has given and nobody has read yet. */
interface Unread {
  readonly lines: string[];
  partial: string;
  readonly decoder: StringDecoder;
  ended: boolean;
}
const unreadOf = new WeakMap<Readable, Unread>();

function unread(input: Readable): Unread {
  const known = unreadOf.get(input);
  if (known) return known;
  const fresh: Unread = { lines: [], partial: "", decoder: new StringDecoder("utf8"), ended: false };
  unreadOf.set(input, fresh);
  return fresh;
}

/** What reads an input: readline where a person types, plain splitting where a pipe delivers. */
interface Source {
  pause(): void;
  resume(): void;
  showPrompt(text: string): void;
  close(): void;
}

function typed(
  input: TerminalInput,
  output: Writable,
  onLine: (line: string) => void,
  onEnd: () => void,
  onInterrupt: () => void,
): Source {
  const reader = createInterface({ input, output, terminal: true });
  reader.on("line", onLine);
  reader.on("close", onEnd);
  reader.on("SIGINT", onInterrupt);
  return {
    pause: () => void reader.pause(),
    resume: () => void reader.resume(),
    showPrompt: (text) => {
      reader.setPrompt(text);
      reader.prompt(true);
    },
    close: () => {
      reader.off("close", onEnd); // closing is not the end of the input
      reader.close();
    },
  };
}

function piped(
  input: Readable,
  output: Writable,
  kept: Unread,
  onLine: (line: string) => void,
  onEnd: () => void,
): Source {
  const onData = (chunk: Buffer | string): void => {
    kept.partial += typeof chunk === "string" ? chunk : kept.decoder.write(chunk);
    const parts = kept.partial.split("\n");
    kept.partial = (parts.pop() ?? "").slice(0, MAX_LINE);
    for (const part of parts) onLine(part.endsWith("\r") ? part.slice(0, -1) : part);
  };
  const end = (): void => {
    if (kept.partial !== "") onLine(kept.partial);
    kept.partial = "";
    onEnd();
  };
  input.on("data", onData);
  input.on("end", end);
  input.on("close", end);
  input.on("error", end);
  return {
    pause: () => void input.pause(),
    resume: () => void input.resume(),
    showPrompt: (text) => void output.write(text),
    close: () => {
      input.off("data", onData);
      input.off("end", end);
      input.off("close", end);
      input.off("error", end);
      input.pause();
    },
  };
}

/**
 * Reads lines from a terminal or a pipe and shows prompts beside them.
 * @param onInterrupt Ctrl-C at a terminal, where it is read as a key and raises no signal
 */
export function openLines(input: TerminalInput, output: Writable, onInterrupt: () => void): Lines {
  const interactive = input.isTTY === true;
  const kept = unread(input);
  /** Shows the prompt of the line that is waited for. */
  let ask: (() => void) | undefined;
  let waiting: ((line: string | undefined) => void) | undefined;

  const deliver = (line: string | undefined): void => {
    const resolve = waiting;
    waiting = undefined;
    resolve?.(line);
  };
  const onLine = (line: string): void => {
    if (waiting) {
      deliver(line);
      return;
    }
    kept.lines.push(line);
    if (kept.lines.length >= QUEUE) source.pause();
  };
  const onEnd = (): void => {
    kept.ended = true;
    deliver(undefined);
  };
  const source = interactive
    ? typed(input, output, onLine, onEnd, onInterrupt)
    : piped(input, output, kept, onLine, onEnd);
  if (input.readableEnded || input.destroyed) kept.ended = true;

  return {
    interactive,
    async next(prompt, signal) {
      if (signal.aborted) return undefined;
      const [gap = "", shown = ""] = /^(\n*)(.*)$/s.exec(prompt)?.slice(1) ?? [];
      output.write(gap);
      ask = () => source.showPrompt(shown);
      ask();
      const line =
        kept.lines.shift() ??
        (kept.ended
          ? undefined
          : await new Promise<string | undefined>((resolve) => {
              const cancel = (): void => deliver(undefined);
              waiting = (value) => {
                signal.removeEventListener("abort", cancel);
                resolve(value);
              };
              signal.addEventListener("abort", cancel, { once: true });
              source.resume();
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
    close() {
      deliver(undefined);
      source.close();
    },
  };
}
