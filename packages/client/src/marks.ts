import type { EventSource, ToolResult } from "./types.ts";

const answered = new WeakSet<object>();
const asking = new WeakSet<EventSource>();
const suspensions = new WeakSet<object>();

/** Marks a result that depends on what a person answered on the way. */
export function markAnswered(result: ToolResult): ToolResult {
  answered.add(result);
  return result;
}

/** Remembers that a call's server asked something while it ran. */
export function noteAsked(source: EventSource): void {
  asking.add(source);
}

/** True for a call during which its server asked something. */
export function hasAsked(source: EventSource): boolean {
  return asking.has(source);
}

/** True for a result that came after questions: it is nobody else's, and no cache keeps it (2026-07-28, caching). */
export function wasAnswered(result: ToolResult): boolean {
  return answered.has(result);
}

/** Passes on what a driver answers, and remembers what it throws to suspend the call. */
export async function suspending<T>(answers: Promise<T>): Promise<T> {
  try {
    return await answers;
  } catch (error) {
    if (typeof error === "object" && error !== null) suspensions.add(error);
    throw error;
  }
}

/** True for what was thrown because the call waits for an answer: it is not over, and comes again when it is resumed. */
export function isSuspension(error: unknown): boolean {
  return typeof error === "object" && error !== null && suspensions.has(error);
}
