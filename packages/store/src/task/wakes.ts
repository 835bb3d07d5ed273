import type { Signal, Signals } from "../event/signals.ts";

/** The wakes of one task store: who listens, and which tasks will be due. */
export interface Wakes {
  /** Calls `wake` for each signal on one of the topics, and when signals may have been lost. */
  listen(topics: readonly string[], wake: () => void): () => void;
  /** Sends a signal in `delayMs`: a hint, so nobody waits for it, and it keeps no process alive. */
  later(delayMs: number, signal: Signal): void;
  close(): void;
}

/** A later timer would end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Wakes over any signals. */
export function createWakes(signals: Signals): Wakes {
  const ends = new Set<() => void>();
  const timers = new Set<NodeJS.Timeout>();

  return {
    listen(topics, wake) {
      const stops = [...new Set(topics)].map((topic) => signals.listen(topic, { hear: wake, gap: wake }));
      const end = (): void => {
        for (const stop of stops) stop();
        ends.delete(end);
      };
      ends.add(end);
      return end;
    },
    later(delayMs, signal) {
      const send = (): void => void signals.send(signal).catch(() => undefined); // whoever looks now and then finds it
      if (delayMs <= 0) return send();
      if (delayMs > LONGEST_TIMER_MS) return;
      const timer = setTimeout(() => {
        timers.delete(timer);
        send();
      }, delayMs);
      timer.unref();
      timers.add(timer);
    },
    close() {
      for (const end of [...ends]) end();
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
    },
  };
}
