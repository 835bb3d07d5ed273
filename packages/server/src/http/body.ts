/** Bytes of one request body that are read before the request is refused. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Milliseconds that one request may take to arrive. */
export const REQUEST_TIMEOUT_MS = 30_000;

/** Levels of nesting: far above what arguments need, far below what makes a recursive check overflow the stack. */
const MAX_DEPTH = 256;

/** Whether `text` opens more than {@link MAX_DEPTH} objects and arrays inside each other. Linear, allocates nothing. */
function isTooDeep(text: string): boolean {
  if (text.length <= MAX_DEPTH) return false;
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i += 1;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (code === 0x7d || code === 0x5d) depth -= 1;
  }
  return false;
}

/** Parses what a stranger sent: `problem` says in one line why it is no message. Never throws. */
export function parseBody(text: string): { value: unknown } | { problem: string } {
  if (isTooDeep(text)) return { problem: `The request body is nested deeper than ${MAX_DEPTH} levels` };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { problem: "The request body is not JSON" };
  }
}

/** How much of a body is read, and for how long. */
export interface BodyLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

/**
 * Reads a request's body as text. A body that is too large, comes too slowly or whose sender left is not read on: an adapter's
 * stream may stay open for ever, and hears nothing of the request's signal by itself.
 * @returns the text, or why there is none
 */
export async function readText(
  request: Request,
  { maxBytes, timeoutMs }: BodyLimits,
): Promise<{ text: string } | { stopped: "too large" | "too slow" | "left" }> {
  if (Number(request.headers.get("content-length")) > maxBytes) return { stopped: "too large" };
  if (request.body === null) return { text: "" };
  const reader = request.body.getReader();
  let stopped: "too large" | "too slow" | "left" | undefined;
  // what waits for the next part is told at once that there is none; how the source takes it is its own business
  const stop = (why: NonNullable<typeof stopped>): void => {
    stopped ??= why;
    void reader.cancel().catch(() => undefined);
  };
  const leave = (): void => stop("left");
  const timer = setTimeout(stop, timeoutMs, "too slow");
  request.signal.addEventListener("abort", leave, { once: true });
  if (request.signal.aborted) leave();
  try {
    const decoder = new TextDecoder();
    let received = 0;
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (stopped) return { stopped };
      if (done) return { text: text + decoder.decode() };
      received += value.byteLength;
      if (received > maxBytes) stop("too large");
      else text += decoder.decode(value, { stream: true });
    }
  } finally {
    clearTimeout(timer);
    request.signal.removeEventListener("abort", leave);
  }
}
