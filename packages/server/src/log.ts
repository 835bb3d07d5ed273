import { serializeError } from "@tenon/core";

export type LogLevel = "debug" | "info" | "notice" | "warning" | "error";

const order: readonly LogLevel[] = ["debug", "info", "notice", "warning", "error"];

/** One line of the server's own log. */
export interface LogEntry {
  readonly time: string;
  readonly level: LogLevel;
  readonly server: string;
  readonly message: string;
  readonly [detail: string]: unknown;
}

/** Writes to the server's own log. */
export type ServerLog = (level: LogLevel, message: string, details?: Record<string, unknown>) => void;

/** @throws TypeError never; an unknown word means the default */
export function logLevelOf(word: string | undefined): LogLevel {
  return order.find((level) => level === word?.toLowerCase()) ?? "info";
}

/**
 * The server's own log: one JSON object a line on stderr, or wherever `sink` puts it.
 * @param least the least severe level that is written
 */
export function createLog(server: string, least: LogLevel, sink?: (entry: LogEntry) => void): ServerLog {
  const write = sink ?? ((entry: LogEntry) => void process.stderr.write(`${JSON.stringify(entry)}\n`));
  return (level, message, details = {}) => {
    if (order.indexOf(level) < order.indexOf(least)) return;
    const { error, ...rest } = details;
    const about =
      error === undefined
        ? {}
        : { error: { ...serializeError(error), stack: error instanceof Error ? error.stack : undefined } };
    write({ time: new Date().toISOString(), level, server, message, ...rest, ...about });
  };
}
