import { cleanText } from "@tenon/core";
import type { Lines } from "./lines.ts";
import type { TerminalTexts } from "./texts.ts";

/** How the terminal asks a person: where to read and write, in which words, until when. */
export interface Asking {
  /** Where to read and write. */
  readonly lines: Lines;
  /** In which words. */
  readonly texts: TerminalTexts;
  /** Ends the question as cancelled. */
  readonly signal: AbortSignal;
  /** Called when the person types quit or exit at a question; it then stays open. Left out, these words mean nothing. */
  readonly leave?: () => void;
  /** True when `decline` and `cancel` leave a question without the `!` even where an option is called so. */
  readonly bareWords?: boolean;
}

/** Characters of one answer, or of a decision with its reason. */
const LINE_LENGTH = 4_000;
const QUIT = new Set(["quit", "exit", "q", "退出", "/quit", "/exit"]);

/** A line a person gives to a question; one that is far too long is asked for again. Undefined at the end of the input. */
export async function nextAnswer({ lines, texts, signal }: Asking, prompt: string): Promise<string | undefined> {
  for (;;) {
    const line = await lines.next(prompt, signal);
    if (line === undefined || line.length <= LINE_LENGTH) return line;
    lines.write(`${texts.tooLong(line.length, LINE_LENGTH)}\n`);
  }
}

/** Whether the person leaves the conversation; then `leave` was called. */
export function leaves(asking: Asking, line: string): boolean {
  if (!asking.leave || !QUIT.has(line.trim().toLowerCase())) return false;
  asking.leave();
  return true;
}

/** Text from elsewhere inside a frame: its own line breaks must not look like ours. */
export function framed(text: string): string {
  return `│ ${cleanText(text).trim().replaceAll("\n", "\n│ ")}`;
}

/** Text from elsewhere on one line. */
export function onOneLine(text: string): string {
  return cleanText(text)
    .replace(/\s*\n\s*/g, " ")
    .trim();
}

/** A value on one line. */
export function shown(value: unknown): string {
  return onOneLine(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}
