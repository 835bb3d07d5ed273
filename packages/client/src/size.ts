import { isRecord, ProtocolError } from "@tenon/core";
import type { ServerConfig } from "./types.ts";

/** Bytes one answer may have unless a client or a call says otherwise: 8 MiB. */
export const MAX_RESULT_BYTES = 8 * 1024 * 1024;

/**
 * About how many bytes a value has as JSON: texts in UTF-8 and a few bytes for everything else. Counting stops above
 * `limit`, so that a large value costs no more than a small one.
 */
export function jsonSize(value: unknown, limit: number): number {
  let size = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && size <= limit) {
    const next = open.pop();
    if (typeof next === "string") size += Buffer.byteLength(next) + 2;
    else if (Array.isArray(next)) {
      size += next.length + 2;
      if (size <= limit) for (const item of next) open.push(item);
    } else if (isRecord(next)) {
      size += 2;
      for (const [key, item] of Object.entries(next)) {
        size += Buffer.byteLength(key) + 4;
        open.push(item);
      }
    } else size += 4;
  }
  return size;
}

/** Whether a value is nested deeper than `levels`; what recursion would not survive is found without recursion. */
export function deeperThan(value: unknown, levels: number): boolean {
  let layer: unknown[] = [value];
  for (let depth = 0; layer.length > 0; depth++) {
    if (depth > levels) return true;
    layer = layer.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item) : []));
  }
  return false;
}

/** The error for an answer above its limit; the connection lives. */
export function tooLarge(server: string, what: string, limit: number): ProtocolError {
  return new ProtocolError(
    `${what} on server "${server}": result too large (limit ${limit} bytes). Ask for less, or raise maxResultBytes`,
    { code: "too_large", server, maybeExecuted: true, data: { limit } },
  );
}

/**
 * The server's configuration with room for results of `maxResultBytes`, unless it has a limit of its own for what it
 * receives: a result takes more bytes on the wire than it has as text.
 */
export function withRoom(config: ServerConfig, maxResultBytes: number | undefined): ServerConfig {
  if (maxResultBytes === undefined || maxResultBytes <= MAX_RESULT_BYTES || "transport" in config) return config;
  return { maxResponseBytes: 2 * maxResultBytes, ...config };
}
