import { rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { ConfigError } from "@tenon/core";

/** Bytes of a socket's path that the kernel keeps; node cuts off the rest without a word. */
const MAX_BYTES = process.platform === "linux" ? 107 : 103;

/** Only sockets are ever removed, whatever the path names. */
const isSocket = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isSocket() === true;

/** Whether a socket file is what a process left that did not end by itself: nobody answers it. */
function isLeftOver(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(false);
    });
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
}

/** What stands in the way of a socket at `path`, as the system's own error (EACCES, EADDRINUSE) does not say it. */
function obstacle(path: string): string | undefined {
  if (process.platform === "win32") return undefined; // named pipes have other rules
  const bytes = Buffer.byteLength(path);
  if (bytes === 0) return "is empty; give the path of a socket";
  if (path.includes("\0")) return "holds a null character";
  if (bytes > MAX_BYTES) return `has ${bytes} bytes, a socket's path may have ${MAX_BYTES}; choose a shorter one`;
  const folder = statSync(dirname(path), { throwIfNoEntry: false });
  if (!folder?.isDirectory()) return `cannot be opened: there is no folder ${dirname(path)}; make it first`;
  const there = statSync(path, { throwIfNoEntry: false });
  if (there && !there.isSocket()) return "is taken by a file that is no socket; remove it or choose another path";
  return undefined;
}

/**
 * Checks that a unix socket can be opened at `path` and removes one that a crashed process left there.
 * @throws ConfigError `code: "unix_socket"` naming the path
 */
export async function prepareUnixSocket(path: string): Promise<void> {
  const problem = obstacle(path);
  if (problem) {
    throw new ConfigError(`Unix socket ${JSON.stringify(path)} ${problem}`, { code: "unix_socket", data: { path } });
  }
  if (isSocket(path) && (await isLeftOver(path))) rmSync(path, { force: true });
}
