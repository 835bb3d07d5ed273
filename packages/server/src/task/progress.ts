import type { JsonObject } from "@tenon/core";
import type { TaskRun } from "@tenon/store";
import type { ToolContext } from "../handler/context.ts";

/** Milliseconds between two writes of how far a task is. */
const WRITE_MS = 250;

/** How far a task is, kept with it: at most four writes a second, the newest wins, the last is always written. */
export interface TaskProgress {
  readonly report: ToolContext["progress"];
  /** Writes what is left and stops. */
  end(): Promise<void>;
}

/** @param failed hears of a write that did not succeed: progress is worth no more than a line in the log */
export function createTaskProgress(run: TaskRun, failed: (error: unknown) => void): TaskProgress {
  let last = Number.NEGATIVE_INFINITY;
  let held: { statusMessage: string; progress: JsonObject } | undefined;
  let writing: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let next = 0;
  let over = false;

  async function write(): Promise<void> {
    timer = undefined;
    const about = held;
    if (!about) return;
    held = undefined;
    next = performance.now() + WRITE_MS;
    await run.report(about).catch(failed);
  }
  function schedule(): void {
    if (over || timer || writing || !held) return;
    timer = setTimeout(
      () => {
        writing = write().finally(() => {
          writing = undefined;
          schedule();
        });
      },
      Math.max(0, next - performance.now()),
    );
    timer.unref();
  }
  return {
    async report(done, total, message) {
      // an endless or unknown number has no place in JSON, and after infinity nothing grows
      if (over || !Number.isFinite(done) || done <= last) return;
      last = done;
      const whole = total !== undefined && Number.isFinite(total) ? total : undefined;
      held = {
        statusMessage: message ?? (whole === undefined ? String(done) : `${done} of ${whole}`),
        progress: {
          progress: done,
          ...(whole !== undefined && { total: whole }),
          ...(message !== undefined && { message }),
        },
      };
      schedule();
    },
    async end() {
      over = true;
      clearTimeout(timer);
      await writing;
      await write();
    },
  };
}
