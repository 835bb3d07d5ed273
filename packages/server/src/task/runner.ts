import { processHolder } from "@tenon/store";
import { type RunParts, runTask } from "./run.ts";

/** Milliseconds between two looks for due tasks, whatever one was told. */
const LOOK_MS = 1_000;
/** Milliseconds between two sweeps. */
const SWEEP_MS = 5_000;
/** Milliseconds without a look after one that failed; doubled each time. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** Milliseconds that running tasks have to stop when the process does. */
const CLOSE_MS = 2_000;

/** Takes due tasks and runs them. */
export interface Runner {
  /** Takes no more, stops what runs and hands it back: within two seconds. */
  close(): Promise<void>;
  /** Resolves when it was closed. */
  readonly done: Promise<void>;
}

/**
 * @param options.holds whether it keeps the process alive, as a process does that does nothing else
 */
export function startRunner(parts: RunParts, options: { concurrency: number; holds: boolean }): Runner {
  const { service, store } = parts;
  const { serverName, log } = service;
  const servers = [serverName];
  const holder = processHolder();
  const running = new Set<Promise<void>>();
  const closing = new AbortController();
  let filling: Promise<void> | undefined;
  let again = false;
  let swept = 0;
  let failures = 0;
  let lookFrom = 0;

  /** Takes tasks until nothing is due or all places are taken. */
  async function take(): Promise<void> {
    try {
      await service.lifespan(); // before a task is taken: what handlers need is there, or nothing counts as tried
      while (running.size < options.concurrency && !closing.signal.aborted) {
        const run = await store.take(servers, holder);
        failures = 0;
        if (!run) return;
        const work = runTask(parts, run, closing.signal).finally(() => {
          running.delete(work);
          fill();
        });
        running.add(work);
      }
    } catch (error) {
      const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures);
      failures += 1;
      lookFrom = performance.now() + pauseMs;
      log("warning", "looking for tasks failed; trying again", { error, pauseMs });
    }
  }
  function fill(): void {
    if (closing.signal.aborted || running.size >= options.concurrency || performance.now() < lookFrom) return;
    if (filling) {
      again = true; // what came meanwhile may have been looked past
      return;
    }
    filling = take().finally(() => {
      filling = undefined;
      if (!again) return;
      again = false;
      fill();
    });
  }
  function look(): void {
    fill();
    if (performance.now() < swept) return;
    swept = performance.now() + SWEEP_MS;
    store.sweep().then(
      ({ requeued }) => {
        if (requeued > 0) fill();
      },
      (error: unknown) => log("warning", "sweeping tasks failed", { error }),
    );
  }
  const unfollow = store.onDue(servers, fill);
  const timer = setInterval(look, LOOK_MS);
  if (!options.holds) timer.unref();
  look();

  let closed: Promise<void> | undefined;
  let finish: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    finish = resolve;
  });
  async function end(): Promise<void> {
    closing.abort();
    unfollow();
    clearInterval(timer);
    let late: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      late = setTimeout(resolve, CLOSE_MS);
    });
    // a task that is being taken at this moment is handed back like the others
    await Promise.race([Promise.resolve(filling).then(() => Promise.allSettled([...running])), over]);
    clearTimeout(late);
    finish();
  }
  return {
    done,
    close() {
      closed ??= end();
      return closed;
    },
  };
}
