import { ConfigError, TenonError } from "@tenon/core";
import { LeaseLostError, type TaskRun, type TaskStore } from "@tenon/store";
import type { ServerLog } from "../log.ts";

/** Why a run must stop: the task is not ours any more (cancelled, over, taken by another process), this process stops, the store failed. */
export type StopReason = "gone" | "closing" | "store";

/** Milliseconds a stopped handler may take for its own cleaning up, before it is left behind. */
const GRACE_MS = { gone: 5_000, closing: 1_500, store: 5_000 } as const satisfies Record<StopReason, number>;
/** Least milliseconds between two looks at the task after word that it changed. */
const LOOK_MS = 200;

/** A later timer would ring at once; whoever waits that long is told by a look. */
const LONGEST_MS = 2 ** 31 - 1;

const WORDS: Record<StopReason, string> = {
  gone: "the task was cancelled, is over, or went to another process",
  closing: "this process stops; another run of the task continues after the last finished step",
  store: "what was done could not be recorded; another run of the task continues after the last finished step",
};

/** Keeps the right to run a task while its handler works, and says when it has to stop. */
export interface RunWatch {
  /** What the handler sees as `ctx.signal`. */
  readonly signal: AbortSignal;
  /** Why it was stopped, if it was. */
  readonly stopped: StopReason | undefined;
  /** Resolves when the handler was stopped and its grace is over. */
  readonly left: Promise<void>;
  /** Why it was stopped, where the store will never take what was to be recorded. */
  readonly refused: ConfigError | undefined;
  /** @throws TenonError `code: "task_stopped"` when nothing may take effect any more */
  check(): Promise<void>;
  /** Tells that something could not be recorded. */
  failed(error: unknown): void;
  end(): void;
}

/** @param closing fires when this process stops */
export function watchRun(run: TaskRun, store: TaskStore, closing: AbortSignal, log: ServerLog): RunWatch {
  const { id, tool } = run.task;
  const controller = new AbortController();
  let stopped: StopReason | undefined;
  let refused: ConfigError | undefined;
  /** Until when the right surely lasts. */
  let held = performance.now() + store.leaseMs;
  let renewing = false;
  let grace: NodeJS.Timeout | undefined;
  let look: NodeJS.Timeout | undefined;
  let leave: () => void = () => undefined;
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });

  const reasonError = (reason: StopReason): TenonError =>
    new TenonError(`Task ${id} of ${tool}: ${WORDS[reason]}`, { code: "task_stopped", data: { taskId: id, reason } });

  function stop(reason: StopReason): void {
    if (stopped) return;
    stopped = reason;
    grace = setTimeout(leave, GRACE_MS[reason]);
    controller.abort(reasonError(reason));
  }
  // a handler that kept the process busy for long may still have its right; a store that does not answer cannot say so
  const isOver = (): boolean => performance.now() > held;
  async function renew(): Promise<void> {
    if (renewing) {
      if (isOver()) stop("gone");
      return;
    }
    renewing = true;
    const asked = performance.now();
    try {
      if (await run.renew()) held = asked + store.leaseMs;
      else stop("gone");
    } catch (error) {
      log("warning", "renewing a task's lease failed", { task: id, error });
      if (isOver()) stop("gone"); // by now another process may have it
    } finally {
      renewing = false;
    }
  }
  /** Whether it is still to be done. The right itself is looked at when it is renewed. */
  async function peek(): Promise<void> {
    try {
      const task = await store.find(id);
      if (task?.status !== "working") stop("gone");
    } catch (error) {
      log("warning", "looking at a task that runs failed", { task: id, error });
    } finally {
      look = undefined;
    }
  }
  /** One look at a time, and not at every change: the task's own progress is one too. */
  function soon(): void {
    if (stopped || look) return;
    look = setTimeout(() => void peek(), LOOK_MS);
    look.unref();
  }
  const timer = setInterval(() => void renew(), store.leaseMs / 3);
  timer.unref();
  // at the end of its time nobody looks at it for a while, and it should not run on until then
  const { createdAt, ttlMs } = run.task;
  const leftMs = ttlMs === null ? LONGEST_MS : Math.max(0, createdAt + ttlMs - Date.now());
  const expiry = setTimeout(
    () => {
      store.sweep().then(renew, (error: unknown) => log("warning", "sweeping tasks failed", { error }));
    },
    Math.min(leftMs, LONGEST_MS),
  );
  expiry.unref();
  const unfollow = store.onChange(id, soon);
  const onClosing = (): void => stop("closing");
  closing.addEventListener("abort", onClosing, { once: true });
  if (closing.aborted) onClosing();

  return {
    signal: controller.signal,
    get stopped() {
      return stopped;
    },
    left,
    get refused() {
      return refused;
    },
    async check() {
      // a process that stood still for longer than its lease asks first: its timers have not rung yet
      if (!stopped && isOver()) await renew();
      if (stopped) throw reasonError(stopped);
    },
    failed(error) {
      if (error instanceof LeaseLostError) return stop("gone");
      log("error", "a step of a task could not be recorded; another run continues after the last one that was", {
        task: id,
        tool,
        error,
      });
      if (error instanceof ConfigError) refused ??= error;
      stop("store");
    },
    end() {
      clearInterval(timer);
      clearTimeout(grace);
      clearTimeout(look);
      clearTimeout(expiry);
      closing.removeEventListener("abort", onClosing);
      unfollow();
    },
  };
}
