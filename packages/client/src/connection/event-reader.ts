import { readableEvent } from "./unreadable.ts";

const LF = 10;
const CR = 13;
const NEWLINE = Buffer.from("\n");

/** Cuts an event stream into its events. */
export interface EventReader {
  /** The events that end in this chunk, as the SDK takes them; undefined when one is too large. */
  take(chunk: Buffer): Buffer[] | undefined;
  /** What came after the last one. */
  rest(): Buffer;
}

/**
 * A reader of events of at most `limit` bytes. An empty line ends one, whatever the lines end with: the SDK's parser waits
 * behind a CR for an LF that may never come, so an event that ends with one gets it at once.
 */
export function eventReader(limit: number): EventReader {
  let parts: Buffer[] = [];
  let size = 0;
  /** Whether the line at hand is empty so far, and whether the last byte was a CR: an LF after it belongs to it. */
  let empty = true;
  let afterCr = false;
  const gather = (...more: Buffer[]) => {
    const all = [...parts, ...more];
    parts = [];
    size = 0;
    return all.length === 1 ? (all[0] ?? NEWLINE) : Buffer.concat(all);
  };
  return {
    take(chunk) {
      const events: Buffer[] = [];
      let from = 0;
      let at = 0;
      let nextCr = -1;
      while (at < chunk.length) {
        const byte = chunk[at];
        if (byte !== LF && byte !== CR) {
          empty = false;
          afterCr = false;
          if (nextCr < at) nextCr = chunk.indexOf(CR, at);
          if (nextCr === -1) nextCr = chunk.length;
          const nextLf = chunk.indexOf(LF, at);
          at = Math.min(nextCr, nextLf === -1 ? chunk.length : nextLf);
          continue;
        }
        at++;
        if (byte === LF && afterCr) {
          afterCr = false;
          // the event before it has one already
          if (parts.length === 0 && from === at - 1) from = at;
          continue;
        }
        afterCr = byte === CR;
        if (empty) {
          if (size + at - from > limit) return undefined;
          const end = chunk.subarray(from, at);
          events.push(readableEvent(afterCr ? gather(end, NEWLINE) : gather(end)));
          from = at;
        }
        empty = true;
      }
      if (from < chunk.length) parts.push(chunk.subarray(from));
      size += chunk.length - from;
      return size > limit ? undefined : events;
    },
    rest: () => gather(),
  };
}
