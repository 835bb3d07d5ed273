import type { Progress } from "@modelcontextprotocol/client";
import type { ClientEvents, ProgressEvent } from "./types/events.ts";

/** Calls event handlers so that one that throws, or rejects, is reported and nothing else. */
export type Emit = <A extends unknown[]>(handler: ((...args: A) => unknown) | undefined, ...args: A) => void;

function toStderr(error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`tenon: an event handler threw; the call goes on: ${text}\n`);
}

/** The emitter for a client's events. */
export function createEmit(events: ClientEvents): Emit {
  const report = (error: unknown) => {
    try {
      (events.onHandlerError ?? toStderr)(error);
    } catch (second) {
      toStderr(second);
    }
  };
  return (handler, ...args) => {
    if (!handler) return;
    try {
      const outcome = handler(...args);
      // a handler may be async although nobody waits for it
      if (outcome instanceof Promise) outcome.catch(report);
    } catch (error) {
      report(error);
    }
  };
}

/** A progress notification as an event; percent only where a positive total is known. */
export function progressEvent({ progress, total, message }: Progress): ProgressEvent {
  const known = total !== undefined && total > 0;
  return {
    progress,
    ...(total !== undefined && { total }),
    ...(message !== undefined && { message }),
    ...(known && { percent: Math.min(100, Math.max(0, Math.round((progress / total) * 1_000) / 10)) }),
  };
}
