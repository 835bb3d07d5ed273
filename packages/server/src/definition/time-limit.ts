import { ConfigError } from "@tenon/core";
import { ToolError } from "../errors.ts";
import type { ServerLog } from "../log.ts";

/** How long one run of a handler may take unless its server or its definition says otherwise: ten minutes. */
export const HANDLER_TIMEOUT_MS = 600_000;
/** Above this, in milliseconds, a timer ends at once instead of late: about 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

/** @throws ConfigError `code: "time_limit"` for a time that ends at once or that no timer can keep */
export function checkTimeoutMs(timeoutMs: number | undefined, where: string): void {
  if (timeoutMs === undefined || (timeoutMs > 0 && timeoutMs <= LONGEST_MS)) return;
  throw new ConfigError(
    `${where}: timeoutMs must be a positive number of milliseconds, at most ${LONGEST_MS}, got ${String(timeoutMs)}`,
    { code: "time_limit" },
  );
}

/**
 * Bounds one run of a handler. A question ends the run, so what a person takes to answer does not count. A class, since one is made
 * for every call and most of it is never asked for.
 */
export class TimeLimit {
  readonly ms: number;
  readonly #what: string;
  readonly #log: ServerLog;
  #controller: AbortController | undefined;
  #error: ToolError | undefined;

  /** @param what is run, for the caller and the log: `Tool refund` */
  constructor(what: string, ms: number, log: ServerLog) {
    this.#what = what;
    this.ms = ms;
    this.#log = log;
  }

  /** Ends the run: aborts the handler's signal and gives what its caller is told. */
  expire(): ToolError {
    this.#error = new ToolError(
      `${this.#what} took longer than the ${this.ms / 1_000} s it may take and was given up. It may have taken effect: check before you repeat it`,
      { code: "timeout", data: { code: "timeout", timeoutMs: this.ms } },
    );
    this.#log("error", `${this.#what} did not end in time; its signal was aborted and its caller told`, {
      timeoutMs: this.ms,
    });
    this.#controller?.abort(this.#error);
    return this.#error;
  }

  /** The signal the handler sees: that of its request, and the end of its time. Made when it is asked for. */
  signal(request: AbortSignal): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#error) this.#controller.abort(this.#error);
    return AbortSignal.any([request, this.#controller.signal]);
  }
}
