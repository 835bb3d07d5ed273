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
