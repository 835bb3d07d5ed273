import { readFileSync } from "node:fs";
import type Database from "better-sqlite3";

/** Milliseconds of the machine's own clock: the same for all its processes, and nobody sets it. It stands still while the machine sleeps. */
const monotonicMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);

/** Which boot of the machine this is; undefined where nothing says so, as on macOS and Windows. */
function thisBoot(): string | undefined {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() || undefined;
  } catch {
    return undefined;
  }
}

interface Anchor {
  readonly boot: string;
  readonly monotonic_ms: number;
  readonly at_ms: number;
}

const ID = 1;

/** What the clock of the last boot had come to: whoever held something then is gone. */
const LAST_KNOWN = `select max(
  coalesce((select at_ms from tenon_clock where id = ${ID}), 0),
  coalesce((select max(fence) from tenon_leases), 0),
  coalesce((select max(lease_until) from tenon_outcomes where status = 'running'), 0)
)`;

/** Writes where the clock of this boot begins, unless another process just did. */
function anchor(database: Database.Database, boot: string): Anchor {
  return database
    .transaction(() => {
      const before = kept(database);
      if (before?.boot === boot) return before;
      // the times of a file without a clock are those of many clocks, of which one may have been far ahead
      const last = before ? Number(database.prepare(LAST_KNOWN).pluck().get()) : 0;
      const made: Anchor = { boot, monotonic_ms: monotonicMs(), at_ms: Math.max(Date.now(), last) };
      database
        .prepare("insert or replace into tenon_clock (id, boot, monotonic_ms, at_ms) values (?, ?, ?, ?)")
        .run(ID, made.boot, made.monotonic_ms, made.at_ms);
      return made;
    })
    .immediate();
}

const kept = (database: Database.Database): Anchor | undefined =>
  database.prepare<[number], Anchor>("select boot, monotonic_ms, at_ms from tenon_clock where id = ?").get(ID);

/**
 * The one clock that all processes of the machine have for a file, whatever their time of day is: how long the machine has been
 * running, counted from what the first process of a boot took for the time. Nobody corrects it before the next boot: a clock that
 * can be set takes leases away. Where no boot can be told from another it is the time of day.
 * @param database with its tables
 * @returns milliseconds since 1970, about: right for how long something lasts, not for telling people when it was
 */
export function openMachineClock(database: Database.Database): () => number {
  const boot = thisBoot();
  if (boot === undefined) return () => Date.now();
  const found = kept(database);
  const { at_ms, monotonic_ms } = found?.boot === boot ? found : anchor(database, boot);
  const ahead = at_ms - monotonic_ms;
  return () => ahead + monotonicMs();
}
