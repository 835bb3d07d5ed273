/** What the buffer needs to know about an event to keep its size in bounds. */
export interface Buffered {
  readonly type: string;
  readonly toolCallId?: string;
  readonly messageId?: string;
  readonly delta?: string;
}

/** Events between a run and whoever reads them. */
export interface EventBuffer<E extends Buffered> {
  push(event: E): void;
  /** The next event, or undefined while there is none. */
  take(): E | undefined;
  /** Resolves when there is something to take. One reader at a time. */
  ready(): Promise<void>;
  /** How many log events a slow reader has lost. */
  readonly lost: number;
}

const MERGED = new Set(["text", "reasoning", "call-args"]);

/**
 * A buffer that a slow reader cannot make grow with the chatter of servers: above half of `capacity` a call's new progress
 * takes the place of its last unread one, and pieces of one text become one piece of at most `maxText` UTF-16 units; at
 * `capacity` the oldest log lines go. Everything else is never lost; there is only so much of it in a run.
 */
export function eventBuffer<E extends Buffered>(capacity: number, maxText: number): EventBuffer<E> {
  const queue = new Map<number, E>();
  const newest = new Map<string, number>(); // by what may be merged → its place in the queue
  const logs = new Set<number>();
  let places = 0;
  let lost = 0;
  let wake: (() => void) | undefined;

  function keyOf(event: E): string | undefined {
    if (event.type === "progress") return `progress ${event.toolCallId ?? ""}`;
    if (MERGED.has(event.type)) return `${event.type} ${event.messageId ?? event.toolCallId ?? ""}`;
    return undefined;
  }

  function merged(event: E, key: string): boolean {
    const place = newest.get(key);
    const waiting = place === undefined ? undefined : queue.get(place);
    if (place === undefined || waiting === undefined) return false;
    if (queue.size < capacity / 2) return false; // the reader keeps up: everything is told as it came
    if (event.type === "progress") {
      queue.set(place, event);
      return true;
    }
    const delta = `${waiting.delta ?? ""}${event.delta ?? ""}`;
    if (delta.length > maxText) return false;
    queue.set(place, { ...waiting, delta });
    return true;
  }

  function forgetLog(): boolean {
    const [oldest] = logs;
    if (oldest === undefined) return false;
    logs.delete(oldest);
    queue.delete(oldest);
    lost += 1;
    return true;
  }

  return {
    get lost() {
      return lost;
    },
    push(event) {
      const key = keyOf(event);
      if (key !== undefined && merged(event, key)) return;
      if (queue.size >= capacity && !forgetLog() && event.type === "log") {
        lost += 1;
        return;
      }
      const place = places++;
      queue.set(place, event);
      if (key !== undefined) newest.set(key, place);
      if (event.type === "log") logs.add(place);
      wake?.();
    },
    take() {
      for (const [place, event] of queue) {
        queue.delete(place);
        logs.delete(place);
        const key = keyOf(event);
        if (key !== undefined && newest.get(key) === place) newest.delete(key);
        return event;
      }
      return undefined;
    },
    ready() {
      if (queue.size > 0) return Promise.resolve();
      return new Promise((resolve) => {
        wake = () => {
          wake = undefined;
          resolve();
        };
      });
    },
  };
}
