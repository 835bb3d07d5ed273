import { randomUUID } from "node:crypto";
import { open, realpath, rename, rm, stat, utimes } from "node:fs/promises";
import { ConnectionError, codeOf } from "@tenon/core";
import { pause } from "./connection/time.ts";

const WAIT_MS = 10_000;
/** A holder shows every second that it lives; one that has not for so long was killed. */
const STALE_MS = 5_000;
const ALIVE_MS = 1_000;

/** Replaces a file at once: whoever reads sees the old content or the new one. A link stays a link. */
export async function replaceFile(path: string, text: string, mode: number): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const temporary = `${target}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, "wx", mode);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function takeGuard(path: string, guard: string, waitMs: number): Promise<void> {
  const until = Date.now() + waitMs;
  for (;;) {
    try {
      const file = await open(guard, "wx", 0o600);
      await file.close();
      return;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      const age = await stat(guard).then(
        ({ mtimeMs }) => Date.now() - mtimeMs,
        () => 0,
      );
      if (age > STALE_MS) {
        // renamed first, so that of several who see it old only one takes it away
        const old = `${guard}.${randomUUID()}`;
        await rename(guard, old).then(
          () => rm(old, { force: true }),
          () => {},
        );
      } else if (Date.now() > until) {
        throw new ConnectionError(
          `${path} is in use by another process for more than ${waitMs} ms; if none runs, delete ${guard}`,
          { code: "lock_busy", retryable: true, cause: error },
        );
      } else await pause(10 + Math.random() * 30);
    }
  }
}

/**
 * Holds `<path><suffix>` while `work` runs: one at a time, among processes too.
 * @param path the file it is about, for messages
 * @throws ConnectionError `lock_busy`
 */
export async function exclusively<T>(
  path: string,
  work: () => Promise<T>,
  { suffix = ".lock", waitMs = WAIT_MS }: { suffix?: string; waitMs?: number } = {},
): Promise<T> {
  const guard = `${path}${suffix}`;
  await takeGuard(path, guard, waitMs);
  const alive = setInterval(() => {
    const now = new Date();
    utimes(guard, now, now).catch(() => {});
  }, ALIVE_MS);
  alive.unref();
  try {
    return await work();
  } finally {
    clearInterval(alive);
    await rm(guard, { force: true });
  }
}
