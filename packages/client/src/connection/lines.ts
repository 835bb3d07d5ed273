import { type JSONRPCMessage, parseJSONRPCMessage, ReadBuffer } from "@modelcontextprotocol/client";
import { messageOf } from "@tenon/core";
import { IdScanner } from "./id-scanner.ts";
import { fromBrokenText, readable } from "./unreadable.ts";

export { IdScanner };

const LF = 10;

/** Whether a line begins like JSON that could be a message; a flood of other words must not cost a parser's error each. */
function mayBeMessage(line: Buffer): boolean {
  let at = 0;
  while (at < line.length && (line[at] ?? 0) <= 32) at++;
  return line[at] === 123 || line[at] === 91;
}

/**
 * The SDK's buffer for standard output with a limit per message that costs only that message: what is too long passes by
 * unread except for its id. The SDK's own gives up the whole connection.
 */
export class LineBuffer extends ReadBuffer {
  readonly #limit: number;
  readonly #onTooLarge: (id: string | number | undefined) => void;
  #parts: Buffer[] = [];
  #size = 0;
  #skipping: IdScanner | undefined;
  #lines: Buffer[] = [];
  #next = 0;
  /** What is left of a line with several messages, as the revision of 2025-03-26 allows. */
  #batch: unknown[] = [];

  /** @param onTooLarge called once per message over `limit` bytes, with its id where it has one */
  constructor(limit: number, onTooLarge: (id: string | number | undefined) => void) {
    super();
    this.#limit = limit;
    this.#onTooLarge = onTooLarge;
  }

  override append(chunk: Buffer): void {
    let rest = chunk;
    for (let at = rest.indexOf(LF); at !== -1; at = rest.indexOf(LF)) {
      this.#take(rest.subarray(0, at));
      this.#endLine();
      rest = rest.subarray(at + 1);
    }
    if (rest.length > 0) this.#take(rest);
  }

  override readMessage(): JSONRPCMessage | null {
    for (;;) {
      if (this.#batch.length > 0) return parseJSONRPCMessage(this.#batch.shift());
      const line = this.#lines[this.#next++];
      if (line === undefined) {
        // what was read stays until all is: a list that loses its head line by line takes quadratic time
        this.#lines = [];
        this.#next = 0;
        return null;
      }
      const text = line.toString().replace(/\r$/, "");
      let message: unknown;
      try {
        message = JSON.parse(text);
      } catch (error) {
        // words between the messages are no reason to stop
        message = fromBrokenText(text, messageOf(error));
        if (message === undefined) continue;
      }
      // what is JSON but no message is reported by the SDK
      if (!Array.isArray(message)) return parseJSONRPCMessage(readable(message));
      this.#batch = message.map(readable);
    }
  }

  override clear(): void {
    this.#parts = [];
    this.#size = 0;
    this.#lines = [];
    this.#next = 0;
    this.#batch = [];
    this.#skipping = undefined;
  }

  #take(bytes: Buffer): void {
    if (this.#skipping) {
      this.#skipping.push(bytes);
      return;
    }
    this.#parts.push(bytes);
    this.#size += bytes.length;
    if (this.#size <= this.#limit) return;
    this.#skipping = new IdScanner();
    for (const part of this.#parts) this.#skipping.push(part);
    this.#parts = [];
  }

  #endLine(): void {
    if (this.#skipping) this.#onTooLarge(this.#skipping.id);
    else if (this.#size > 0) {
      const line = this.#parts.length === 1 ? (this.#parts[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#parts);
      if (mayBeMessage(line)) this.#lines.push(line);
    }
    this.#parts = [];
    this.#size = 0;
    this.#skipping = undefined;
  }
}
