import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Says to a process that it runs in a mount namespace of its own, made for it. */
const INSIDE = "TENON_CHAOS_NAMESPACE";

/**
 * The command that runs another one where it may mount file systems that nobody else sees.
 * @returns why there is none, where the machine does not allow it
 */
export function ownMounts(): { command: readonly string[]; env: Record<string, string> } | { missing: string } {
  const command = process.getuid?.() === 0 ? ["unshare", "-m"] : ["unshare", "-rm"];
  const [program = "", ...args] = command;
  const tried = spawnSync(program, [...args, "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"], { encoding: "utf8" });
  if (tried.status === 0) return { command, env: { [INSIDE]: "1" } };
  return { missing: `${command.join(" ")} does not work here: ${(tried.stderr || String(tried.error)).trim()}` };
}

/** A small disk, which can be full. */
export interface Disk {
  /** Leaves no byte free. */
  fill(): void;
  /** Makes it larger, which is what helps: SQLite needs room to delete. */
  heal(): void;
  /** Takes it away, with all that is on it. */
  unmount(): void;
}

const SIZE_MB = 192;
const BLOCK = Buffer.alloc(64 * 1024);

/** Mounts a small disk on an empty folder; undefined outside a namespace of one's own. It goes with the namespace. */
export function mountDisk(folder: string): Disk | undefined {
  if (process.env[INSIDE] === undefined) return undefined;
  let size = SIZE_MB;
  let fillers = 0;
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}m,mode=0700`, "tmpfs", folder]);
  const name = (): string => join(folder, `filler-${fillers}`);
  return {
    fill() {
      fillers += 1;
      const file = openSync(name(), "w");
      try {
        for (let length = BLOCK.length; length >= 1; length = Math.floor(length / 16)) {
          try {
            while (writeSync(file, BLOCK, 0, length) === length);
          } catch {
            // no room for this much: try less
          }
        }
      } finally {
        closeSync(file);
      }
    },
    heal() {
      size += 16;
      execFileSync("mount", ["-o", `remount,size=${size}m`, folder]);
      rmSync(name(), { force: true });
    },
    unmount: () => void execFileSync("umount", ["-l", folder]),
  };
}
