import type { Signals } from "../event/signals.ts";

const TOPIC = "audit";
/** Milliseconds in which other processes are told once, however much is written. */
const TELL_EVERY_MS = 25;
/** Milliseconds between two looks where nobody tells of new entries. */
const POLL_MS = 500;
/** The same where somebody does: a message may be lost. */
const SLOW_POLL_MS = 5_000;

/** One follower: looks, waits, looks again. */
export interface Look {
  /** From here on what is added ends the next wait at once. */
  begin(): void;
  /** Until something may have been added, `pollMs` are over, or `ended` fires. */
  wait(pollMs: number | undefined, ended: AbortSignal): Promise<void>;
  end(): void;
}

/** Tells followers of the trail that there may be more of it. */
export interface Watch {
  /** This process added entries. */
  added(): void;
  follow(): Look;
  close(): void;
}

/** @param signals carry the word to other processes, where they can */
export function createWatch(signals: Signals): Watch {
  const followers = new Set<() => void>();
  const wake = (): void => {
    for (const one of followers) one();
  };
  let unsubscribe: (() => void) | undefined;
  let telling: NodeJS.Timeout | undefined;

  return {
    added() {
      wake();
      if (!signals.shared) return;
      telling ??= setTimeout(() => {
        telling = undefined;
        // a hint: whoever misses it looks by itself
        signals.send({ topic: TOPIC, message: null }).catch(() => undefined);
      }, TELL_EVERY_MS).unref();
    },
    follow() {
      let told = false;
      let go: () => void = () => undefined;
      const follower = (): void => {
        told = true;
        go();
      };
      followers.add(follower);
      if (signals.shared) unsubscribe ??= signals.listen(TOPIC, { hear: wake, gap: wake });
      return {
        begin() {
          told = false;
        },
        async wait(pollMs = signals.shared ? SLOW_POLL_MS : POLL_MS, ended) {
          if (told || ended.aborted) return;
          await new Promise<void>((resolve) => {
            const timer = setTimeout(() => go(), pollMs);
            go = () => {
              clearTimeout(timer);
              ended.removeEventListener("abort", go);
              resolve();
            };
            ended.addEventListener("abort", go, { once: true });
          });
          go = () => undefined;
        },
        end() {
          followers.delete(follower);
          if (followers.size > 0) return;
          unsubscribe?.();
          unsubscribe = undefined;
        },
      };
    },
    close: () => clearTimeout(telling),
  };
}
