import { watch } from "node:fs";
import { dirname } from "node:path";

/** How often files are looked at, in milliseconds. */
export interface Pace {
  /** Where the file system says nothing: a network drive, a link into another folder. */
  readonly pollMs: number;
  /** After the file system said something: what writes one file often writes another. */
  readonly settleMs: number;
  /** After a look that found nothing to use. */
  readonly retryMs: number;
}

const PACE: Pace = { pollMs: 10_000, settleMs: 250, retryMs: 1_000 };

/**
 * Calls `look` when something may have changed in the folders of `files`, and every now and then anyway: words of the file
 * system get lost, and a link's target lies elsewhere. One look at a time; nothing of it keeps the process alive.
 * @param look returns whether it wants to look again soon; must not throw
 * @returns ends it
 */
export function followFiles(files: readonly string[], look: () => Promise<boolean>, pace: Pace = PACE): () => void {
  let closed = false;
  let looking = false;
  let missed = false;
  let timer: NodeJS.Timeout | undefined;
  let due = Number.POSITIVE_INFINITY;

  // the earliest of what was asked for: a busy folder must not put off the look for ever
  function lookIn(ms: number): void {
    const at = performance.now() + ms;
    if (closed || at >= due) return;
    due = at;
    clearTimeout(timer);
    timer = setTimeout(() => void run(), ms);
    timer.unref();
  }
  async function run(): Promise<void> {
    due = Number.POSITIVE_INFINITY;
    missed = looking;
    if (looking) return;
    looking = true;
    const again = await look();
    looking = false;
    lookIn(missed ? pace.settleMs : again ? pace.retryMs : pace.pollMs);
  }

  const watchers = [...new Set(files.map((file) => dirname(file)))].flatMap((folder) => {
    try {
      // the folder, not the file: files are replaced by renaming, and links are swapped beside them
      const watcher = watch(folder, { persistent: false }, () => lookIn(pace.settleMs));
      watcher.on("error", () => watcher.close()); // the folder is gone: looking now and then goes on
      return [watcher];
    } catch {
      return []; // not every file system can tell
    }
  });
  lookIn(pace.pollMs);
  return () => {
    closed = true;
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}
