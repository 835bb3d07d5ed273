/** Something that is to happen at a time, unless it is taken back. */
interface Entry {
  /** By `performance.now()`. */
  readonly at: number;
  readonly expire: () => void;
}

const open = new Set<Entry>();
let timer: NodeJS.Timeout | undefined;
/** When the timer rings. */
let due = Number.POSITIVE_INFINITY;

function ringAt(at: number): void {
  clearTimeout(timer);
  due = at;
  timer = setTimeout(ring, Math.max(1, Math.ceil(at - performance.now())));
  timer.unref(); // who waits for what is limited keeps the process
}

function ring(): void {
  due = Number.POSITIVE_INFINITY;
  const now = performance.now();
  let next = Number.POSITIVE_INFINITY;
  const over: Entry[] = [];
  for (const entry of open) {
    if (entry.at <= now) over.push(entry);
    else next = Math.min(next, entry.at);
  }
  if (next !== Number.POSITIVE_INFINITY) ringAt(next);
  for (const entry of over) {
    open.delete(entry);
    queueMicrotask(entry.expire); // what one of them throws is not the others' business
  }
}

/**
 * Calls `expire` after so many milliseconds, unless that is taken back first. All deadlines share one timer, which rings for the
 * earliest: almost every call is over long before its own, and a timer made and cleared for each costs a tenth of a short call.
 * @param ms at most what a timer can wait, 2^31 - 1
 * @returns takes it back
 */
export function deadline(ms: number, expire: () => void): () => void {
  const entry: Entry = { at: performance.now() + ms, expire };
  open.add(entry);
  if (entry.at < due) ringAt(entry.at);
  return () => void open.delete(entry);
}
