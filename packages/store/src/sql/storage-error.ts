import { codeOf, TenonError } from "@tenon/core";

/** Why nothing can be kept. */
const REASONS = {
  disk_full: "The disk of the store is full: nothing was written. Make room on it, then send the same again",
  read_only:
    "The file of the store cannot be written to: nothing was written. Give its owner the right to, then send the same again",
} as const;

/**
 * The store could not write, and has written nothing: its disk is full (`code: "disk_full"`, worth another try once there is room) or
 * its file is read-only (`code: "read_only"`). The driver's error is its `cause`; the message names no path.
 */
export class StorageError extends TenonError {
  declare readonly code: keyof typeof REASONS;

  /** @param code which of the two it is */
  constructor(code: keyof typeof REASONS, options: { cause?: unknown } = {}) {
    super(REASONS[code], { ...options, code, retryable: code === "disk_full", maybeExecuted: false });
  }
}

/**
 * What a failure of SQLite or of the file system means for whoever wrote: a statement or transaction that fails with one of these has
 * changed nothing.
 * @returns undefined for any other failure
 */
export function toStorageError(error: unknown): StorageError | undefined {
  if (error instanceof StorageError) return error;
  const code = codeOf(error);
  // the file next to the database that its users share cannot grow either
  if (code === "SQLITE_FULL" || code === "SQLITE_IOERR_SHMSIZE" || code === "ENOSPC" || code === "EDQUOT")
    return new StorageError("disk_full", { cause: error });
  if (code?.startsWith("SQLITE_READONLY") || code === "EROFS") return new StorageError("read_only", { cause: error });
  return undefined;
}
