import { isRecord } from "@tenon/core";

/** A value that was cut to fit, or not. */
export interface Bounded<T> {
  readonly value: T;
  readonly truncated: boolean;
}

/** Deeper than what a page can show, and than what a recursive reader survives. */
const MAX_DEPTH = 32;

/** At most `length` UTF-16 units of a text, never half a character. */
export function cutText(text: string, length: number): Bounded<string> {
  if (text.length <= length) return { value: text, truncated: false };
  const last = text.charCodeAt(length - 1);
  return { value: text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length), truncated: true };
}

/** A text in pieces of at most `length` UTF-16 units, which together are the text. */
export function splitText(text: string, length: number): string[] {
  const parts: string[] = [];
  for (let rest = text; rest !== ""; ) {
    const { value } = cutText(rest, Math.max(2, length));
    parts.push(value);
    rest = rest.slice(value.length);
  }
  return parts;
}

/**
 * A copy of a value that JSON can carry and whose JSON is about `budget` UTF-16 units at most: texts are cut, and what no
 * longer fits is left out. What JSON cannot carry becomes the text that says so. Never throws.
 */
export function boundValue(given: unknown, budget: number): Bounded<unknown> {
  let left = budget;
  let truncated = false;
  const open: object[] = [];

  const spend = (size: number): boolean => {
    left -= size;
    if (left >= 0) return true;
    truncated = true;
    return false;
  };
  const text = (value: string): string => {
    const cut = cutText(value, Math.max(0, left));
    truncated ||= cut.truncated;
    left -= cut.value.length + 2;
    return cut.value;
  };
  const inside = (value: object, work: () => unknown): unknown => {
    if (open.includes(value)) return text("[cycle]");
    if (open.length >= MAX_DEPTH) {
      truncated = true;
      return text("[deeper]");
    }
    open.push(value);
    try {
      return work();
    } finally {
      open.pop();
    }
  };

  function list(items: Iterable<unknown>): unknown[] {
    const out: unknown[] = [];
    for (const item of items) {
      if (!spend(1)) break;
      out.push(copy(item) ?? null);
    }
    return out;
  }

  function record(value: Record<string, unknown>): Record<string, unknown> {
    const out: Array<[string, unknown]> = [];
    for (const [key, item] of Object.entries(value)) {
      if (item === undefined || typeof item === "function") continue;
      if (!spend(key.length + 4)) break;
      out.push([key, copy(item)]);
    }
    return Object.fromEntries(out);
  }

  function copy(value: unknown): unknown {
    switch (typeof value) {
      case "string":
        return text(value);
      case "number":
        spend(8);
        return Number.isFinite(value) ? value || 0 : String(value); // -0 is 0 in JSON
      case "boolean":
        spend(5);
        return value;
      case "bigint":
      case "symbol":
        return text(String(value));
      case "undefined":
      case "function":
        return undefined;
    }
    if (value === null) {
      spend(4);
      return null;
    }
    if (Array.isArray(value)) return inside(value, () => list(value));
    if (value instanceof Set) return inside(value, () => list(value));
    if (value instanceof Map) return inside(value, () => list(value));
    if (ArrayBuffer.isView(value)) return text(`[${value.byteLength} bytes]`);
    if (!isRecord(value)) return text("[no JSON]");
    return inside(value, () => {
      const own = "toJSON" in value && typeof value.toJSON === "function" ? value.toJSON() : value;
      return isRecord(own) && own === value ? record(value) : isRecord(own) ? record(own) : copy(own);
    });
  }

  try {
    return { value: copy(given), truncated };
  } catch {
    return { value: "[no JSON]", truncated: true }; // a getter or toJSON of somebody else threw
  }
}

/** `boundValue` of an object; what is none becomes {}. */
export function boundRecord(given: unknown, budget: number): Bounded<Record<string, unknown>> {
  const { value, truncated } = boundValue(given, budget);
  return { value: isRecord(value) ? value : {}, truncated: truncated || !isRecord(value) };
}
