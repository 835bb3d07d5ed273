import { deserializeMessage, ReadBuffer } from "@modelcontextprotocol/client";

const LF = 10;
const QUOTE = 34;
const BACKSLASH = 92;
/** Longest id, or key, that is read from a message that is thrown away. */
const MAX_TOKEN = 200;

/** Reads the `id` of a JSON-RPC message that passes by in pieces, without keeping the message. */
export class IdScanner {
  #depth = 0;
  #inText = false;
  #escaped = false;
  #key = "";
  #token = "";
  #isValue = false;
  #id: string | number | undefined;

  get id(): string | number | undefined {
    return this.#id;
  }

  push(chunk: Uint8Array): void {
    for (const byte of chunk) this.#byte(byte);
  }

  #byte(byte: number): void {
    const top = this.#depth === 1;
    if (this.#inText) {
      if (top && this.#token.length < MAX_TOKEN) this.#token += String.fromCharCode(byte);
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) this.#inText = false;
    } else if (byte === QUOTE) {
      this.#inText = true;
      if (top) this.#token = '"';
    } else if (byte === 123 || byte === 91) {
      this.#depth++;
    } else if (byte === 125 || byte === 93) {
      if (top) this.#endValue();
      this.#depth--;
    } else if (top && byte === 58) {
      this.#key = this.#token;
      this.#token = "";
      this.#isValue = true;
    } else if (top && byte === 44) {
      this.#endValue();
    } else if (top && this.#isValue && byte > 32 && this.#token.length < MAX_TOKEN) {
      this.#token += String.fromCharCode(byte);
    }
  }

  #endValue(): void {
    if (this.#isValue && this.#key === '"id"') {
      try {
        const id: unknown = JSON.parse(this.#token);
        if (typeof id === "string" || typeof id === "number") this.#id = id;
      } catch {
        // not an id
      }
    }
    this.#isValue = false;
    this.#token = "";
  }
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
  readonly #lines: Buffer[] = [];

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

  override readMessage(): ReturnType<ReadBuffer["readMessage"]> {
    for (let line = this.#lines.shift(); line; line = this.#lines.shift()) {
      try {
        return deserializeMessage(line.toString().replace(/\r$/, ""));
      } catch (error) {
        // words between the messages are no reason to stop; what is JSON but no message is reported by the SDK
        if (!(error instanceof SyntaxError)) throw error;
      }
    }
    return null;
  }

  override clear(): void {
    this.#parts = [];
    this.#size = 0;
    this.#lines.length = 0;
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
    else this.#lines.push(this.#parts.length === 1 ? (this.#parts[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#parts));
    this.#parts = [];
    this.#size = 0;
    this.#skipping = undefined;
  }
}
