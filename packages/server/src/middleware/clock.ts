import { ToolError } from "../errors.ts";
import { deadline } from "../handler/deadlines.ts";
import type { ServerLog } from "../log.ts";

/** The time that middleware takes for itself. */
export interface MiddlewareClock {
  /** Rejects when middleware neither answers nor calls `next()` for as long as a handler may take. */
  readonly late: Promise<never>;
  /** Stands still until the returned function is called: what is inside has limits of its own. */
  pause(): () => void;
  stop(): void;
}

/**
 * @param ms without a sign of life
 * @param what is asked, for the caller and the log
 */
export function createMiddlewareClock(ms: number, what: string, log: ServerLog): MiddlewareClock {
  let takeBack: () => void = () => undefined;
  let inside = 0;
  let over = false;
  let start: () => void = () => undefined;
  const late = new Promise<never>((_, reject) => {
    const expire = (): void => {
      log("error", `${what}: middleware neither answered nor called next()`, { timeoutMs: ms });
      const text = `${what} was given up: the server did nothing for ${ms / 1_000} s. It may have taken effect: check before you repeat it`;
      reject(new ToolError(text, { code: "timeout", data: { code: "timeout", timeoutMs: ms } }));
    };
    start = () => {
      takeBack = deadline(ms, expire);
    };
  });
  late.catch(() => undefined); // it may be over before anybody waits
  start();
  return {
    late,
    pause() {
      inside += 1;
      takeBack();
      return () => {
        inside -= 1;
        if (inside === 0 && !over) start();
      };
    },
    stop() {
      over = true;
      takeBack();
    },
  };
}
