/** `promise`, or undefined after `ms` milliseconds. */
export async function bounded<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves after `ms` milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Resolves after `ms` milliseconds. @throws the signal's reason when it is aborted before */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Waits that grow from one failure to the next, in milliseconds: each about twice the last, none above `mostMs`. */
export interface Backoff {
  next(): number;
  reset(): void;
}

/** A quarter more or less each time, so that those who failed together do not come back together. */
export function backoff({ firstMs, mostMs }: { firstMs: number; mostMs: number }): Backoff {
  let wait = firstMs;
  return {
    next: () => {
      const now = Math.min(mostMs, wait * (0.75 + Math.random() / 2));
      wait = Math.min(mostMs, wait * 2);
      return now;
    },
    reset: () => {
      wait = firstMs;
    },
  };
}

/** The milliseconds of a `Retry-After` header: seconds, or a date. Undefined when there is none or it is neither. */
export function retryAfterMs(header: string | string[] | undefined, now = Date.now()): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim();
  if (!text) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
