/** Bytes of one request body that are read before the request is refused. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Levels of nesting: far above what arguments need, far below what makes a recursive check overflow the stack. */
export const MAX_DEPTH = 256;

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
