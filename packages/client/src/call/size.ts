import { isRecord, ProtocolError } from "@tenon/core";
import type { ServerConfig } from "../types/servers.ts";

/** Bytes one answer may have unless a client or a call says otherwise: 8 MiB. */
export const MAX_RESULT_BYTES = 8 * 1024 * 1024;

/** Whether a value is nested deeper than `levels`, at most 1,000: the look itself goes no deeper. */
export function deeperThan(value: unknown, levels: number): boolean {
  if (levels < 0) return true;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some((item) => deeperThan(item, levels - 1));
  return isRecord(value) && Object.values(value).some((item) => deeperThan(item, levels - 1));
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
  return { ...config, maxResponseBytes: config.maxResponseBytes ?? 2 * maxResultBytes };
}
