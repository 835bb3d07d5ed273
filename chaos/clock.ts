import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The clock of one process, which can be set while it runs (libfaketime). */
export interface Clock {
  /** What makes a process follow this clock. */
  readonly env: Readonly<Record<string, string>>;
  /** @param offsetMs milliseconds from the machine's own clock; 0 sets it right */
  set(offsetMs: number): void;
}

/** The library's file for programs with threads, where it is installed. */
function findLibrary(): string | undefined {
  const folders = ["/usr/lib", "/usr/local/lib"].filter((folder) => existsSync(folder));
  const all = folders.flatMap((folder) => [folder, ...readdirSync(folder).map((name) => join(folder, name))]);
  return all.map((folder) => join(folder, "faketime", "libfaketimeMT.so.1")).find((file) => existsSync(file));
}

/**
 * Makes clocks, one for each process.
 * @returns why there are none, where libfaketime is not installed
 */
export function clocks(folder: string): { make(name: string): Clock } | { missing: string } {
  const library = findLibrary();
  if (library === undefined) return { missing: "libfaketime is not installed (Debian: apt-get install faketime)" };
  return {
    make(name) {
      const file = join(folder, `${name}.clock`);
      const set = (offsetMs: number): void =>
        writeFileSync(file, `${offsetMs < 0 ? "-" : "+"}${Math.abs(offsetMs) / 1_000}`);
      set(0);
      return {
        env: {
          LD_PRELOAD: library,
          FAKETIME_TIMESTAMP_FILE: file,
          FAKETIME_NO_CACHE: "1",
          DONT_FAKE_MONOTONIC: "1", // timers go on as they were
        },
        set,
      };
    },
  };
}
