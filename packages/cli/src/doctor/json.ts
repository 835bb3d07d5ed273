/** Levels of arrays and objects that a message may have: what looks at it goes down with each, and a stack has an end. */
const MAX_LEVELS = 1_000;

/** Whether a text has more levels of brackets, outside of its strings, than anybody can follow. */
function isTooDeep(text: string): boolean {
  let level = 0;
  for (const [part] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"?|[[{]+|[\]}]+/gs)) {
    if (part.startsWith('"')) continue;
    level += part.startsWith("[") || part.startsWith("{") ? part.length : -part.length;
    if (level > MAX_LEVELS) return true;
  }
  return false;
}

/** What a server's text holds; undefined where it is no JSON, or none that can be looked at. */
export function parseJson(text: string): unknown {
  try {
    return isTooDeep(text) ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A text of a server; JSON where it sent something else in its place. */
export const textOf = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
