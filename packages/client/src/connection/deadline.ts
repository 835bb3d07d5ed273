import { ConnectionError, type TenonError } from "@tenon/core";

/** Bounds one leg of a call: silence, total time, the caller's signal. */
export interface Deadline {
  /** Aborts when the leg must end; `error` then says why. */
  readonly signal: AbortSignal;
  readonly error: TenonError | undefined;
  /** Milliseconds until the leg ends if nothing arrives. */
  readonly left: number;
  /** Something arrived: the silence is over. */
  touch(): void;
  /** Stops both clocks while a person is asked; call the result to go on. */
  pause(): () => void;
  /** Ends the leg with `error`. */
  fail(error: TenonError): void;
  /** Stops the clocks and lets go of the caller's signal. */
  end(): void;
}

/** The error of a call whose signal was aborted, by its caller or because the client was closed. */
export function cancelled(server: string, what: string, reason: unknown, maybeExecuted: boolean): ConnectionError {
  if (reason instanceof ConnectionError && reason.code === "closed") {
    const message = `the client was closed during ${what} on server "${server}"`;
    return new ConnectionError(message, { code: "closed", server, maybeExecuted });
  }
  return new ConnectionError(`${what} on server "${server}" was cancelled by its caller`, {
    code: "cancelled",
    server,
    maybeExecuted,
    cause: reason,
  });
}

/**
 * Starts the clocks of one leg. The SDK's own timeout cannot be stopped while a legacy server waits for a person inside
 * the call, so the leg is bounded here and the SDK is given the signal.
 * @param options `idleMs` and `totalMs` in milliseconds, `what` names the request in errors
 */
export function startDeadline(options: {
  server: string;
  what: string;
  idleMs: number;
  totalMs: number;
  /** Milliseconds of both that are gone already. */
  spentMs?: number;
  signal?: AbortSignal | undefined;
}): Deadline {
  const { server, what, idleMs, totalMs, spentMs = 0, signal } = options;
  const controller = new AbortController();
  let error: TenonError | undefined;
  let idle: NodeJS.Timeout | undefined;
  let total: NodeJS.Timeout | undefined;
  let totalLeft = Math.max(1, totalMs - spentMs);
  let startedAt = 0;
  let idleSince = 0;
  let pauses = 0;
  let over = false;

  const stop = () => {
    clearTimeout(idle);
    clearTimeout(total);
  };
  const fail = (reason: TenonError) => {
    if (over) return;
    over = true;
    error = reason;
    stop();
    controller.abort(reason);
  };
  const late = (ms: number, how: string) =>
    fail(
      new ConnectionError(
        `${what} on server "${server}" ${how} ${ms} ms; the server may still be working on it. ` +
          "Raise timeoutMs (silence) or totalTimeoutMs (whole leg) if it needs longer",
        { code: "timeout", server, retryable: true, maybeExecuted: true, data: { ms } },
      ),
    );
  const startIdle = (spent = 0) => {
    clearTimeout(idle);
    idleSince = Date.now() - spent;
    idle = setTimeout(() => late(idleMs, "gave no answer and no progress for"), Math.max(1, idleMs - spent));
  };
  const start = (spent = 0) => {
    startedAt = Date.now();
    startIdle(spent);
    total = setTimeout(() => late(totalMs, "took longer than"), totalLeft);
  };
  const onAbort = () => fail(cancelled(server, what, signal?.reason, true));

  start(spentMs);
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });

  return {
    signal: controller.signal,
    get error() {
      return error;
    },
    get left() {
      const now = Date.now();
      return over ? 0 : Math.max(0, Math.min(idleSince + idleMs - now, startedAt + totalLeft - now));
    },
    touch() {
      if (!over && pauses === 0) startIdle();
    },
    pause() {
      if (pauses++ === 0) {
        stop();
        totalLeft = Math.max(0, totalLeft - (Date.now() - startedAt));
      }
      let paused = true;
      return () => {
        if (!paused) return;
        paused = false;
        if (--pauses === 0 && !over) start();
      };
    },
    fail,
    end() {
      over = true;
      stop();
      signal?.removeEventListener("abort", onAbort);
    },
  };
}

/** `promise`, or an abort of `signal` with the error `onAbort` makes, whichever is first. */
export async function withSignal<T>(promise: Promise<T>, signal: AbortSignal, onAbort: () => TenonError): Promise<T> {
  let stop: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    const listen = () => reject(onAbort());
    if (signal.aborted) return listen();
    signal.addEventListener("abort", listen, { once: true });
    stop = () => signal.removeEventListener("abort", listen);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    stop?.();
  }
}
