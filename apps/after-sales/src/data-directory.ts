import { accessSync, constants, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { ConfigError, codeOf, messageOf } from "@tenon/core";

function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path));
}

/**
 * One directory after the other: a recursive mkdir never returns where the system refuses, as below /proc (Node 20).
 * @param occupied the error code when something else has the name
 */
function makeDirectories(path: string, occupied = "EEXIST"): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found) throw Object.assign(new Error(`${path} is no directory`), { code: occupied });
  makeDirectories(dirname(path), "ENOTDIR");
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!existsSync(path)) throw error; // else another process was quicker
  }
}

/**
 * The data directory's absolute path, made when it is missing.
 * @throws ConfigError `code: "data_directory"` saying why it cannot be written
 */
export function openDataDirectory(path: string): string {
  const absolute = resolve(path);
  const probe = join(absolute, `.write-test-${process.pid}`);
  try {
    // mkdir says of a read-only file system that the directory above does not exist
    accessSync(nearestExisting(absolute), constants.W_OK);
    makeDirectories(absolute);
    writeFileSync(probe, "");
    rmSync(probe);
    return absolute;
  } catch (cause) {
    const code = codeOf(cause) ?? "";
    const why: Record<string, string> = {
      EROFS: "the file system is read-only",
      EACCES: "this user may not write there",
      EPERM: "this user may not write there",
      ENOSPC: "the disk is full",
      ENOTDIR: "a part of the path is a file",
      EEXIST: "it is a file",
      ENOENT: "no directory can be made there",
    };
    throw new ConfigError(
      `The data directory ${absolute} cannot be written: ${why[code] ?? messageOf(cause)}. Choose another with --data`,
      { code: "data_directory", cause },
    );
  }
}
