import { ConfigError } from "@tenon/core";
import { ToolError } from "../errors.ts";
import type { ServerLog } from "../log.ts";

/** How long one run of a handler may take unless its server or its definition says otherwise: ten minutes. */
export const HANDLER_TIMEOUT_MS = 600_000;
/** Above this, in milliseconds, a timer ends at once instead of late: about 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

/** Bounds one run of a handler. A question ends the run, so what a person takes to answer does not count. */
export interface TimeLimit {
  readonly ms: number;
  /** Ends the run: aborts the handler's signal and gives what its caller is told. */
  expire(): ToolError;
  /** The signal the handler sees: that of its request, and the end of its time. Made when it is asked for. */
  signal(request: AbortSignal): AbortSignal;
}

/** @throws ConfigError `code: "time_limit"` for a time that ends at once or that no timer can keep */
export function checkTimeoutMs(timeoutMs: number | undefined, where: string): void {
  if (timeoutMs === undefined || (timeoutMs > 0 && timeoutMs <= LONGEST_MS)) return;
  throw new ConfigError(
    `${where}: timeoutMs must be a positive number of milliseconds, at most ${LONGEST_MS}, got ${String(timeoutMs)}`,
    { code: "time_limit" },
  );
}

/** @param what is run, for the caller and the log: `Tool refund` */
export function createTimeLimit(what: string, ms: number, log: ServerLog): TimeLimit {
  let controller: AbortController | undefined;
  let error: ToolError | undefined;
  return {
    ms,
    expire() {
      error = new ToolError(
        `${what} took longer than the ${ms / 1_000} s it may take and was given up. It may have taken effect: check before you repeat it`,
        { code: "timeout", data: { code: "timeout", timeoutMs: ms } },
      );
      log("error", `${what} did not end in time; its signal was aborted and its caller told`, { timeoutMs: ms });
      controller?.abort(error);
      return error;
    },
    signal(request) {
      controller ??= new AbortController();
      if (error) controller.abort(error);
      return AbortSignal.any([request, controller.signal]);
    },
  };
}
