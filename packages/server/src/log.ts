import { serializeError } from "@tenon/core";
import { type LOG_LEVELS, redactor, toJson, traceIdOf } from "@tenon/core/internal";
import { createWriter } from "./log-writer.ts";

/** Levels a server and its handlers write at, the least severe first: everything that speaks of them is made from this list. */
export const LEVELS = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
] as const satisfies readonly (typeof LOG_LEVELS)[number][];

/** How severe a log message is, least severe first. */
export type LogLevel = (typeof LEVELS)[number];

/** Something for each level. */
export function perLevel<T>(make: (level: LogLevel) => T): Record<LogLevel, T> {
  return Object.fromEntries(LEVELS.map((level) => [level, make(level)])) as Record<LogLevel, T>; // one for each
}

/** One line of the server's own log. */
export interface LogEntry {
  /** ISO 8601. */
  readonly time: string;
  /** How severe it is. */
  readonly level: LogLevel;
  /** The server's `name`. */
  readonly server: string;
  /** What happened, in a sentence; details are further keys. */
  readonly message: string;
  readonly [detail: string]: unknown;
}

/** Writes to the server's own log. */
export type ServerLog = (level: LogLevel, message: string, details?: Record<string, unknown>) => void;

/**
 * The log of one request: each line says which request it belongs to, and to which trace. A function more for each request, and no
 * more than that: nothing is looked up until a line is written.
 */
export function requestLog(
  log: ServerLog,
  { requestId, meta }: { readonly requestId: string | number; readonly meta: Readonly<Record<string, unknown>> },
): ServerLog {
  return (level, message, details) => {
    const traceId = traceIdOf(meta);
    log(level, message, { requestId, ...(traceId !== undefined && { traceId }), ...details });
  };
}

/** @throws TypeError never; an unknown word means the default */
export function logLevelOf(word: string | undefined): LogLevel {
  return LEVELS.find((level) => level === word?.toLowerCase()) ?? "info";
}

/** The details JSON can carry; what it cannot is said in words, so that the line is written all the same. */
function printable(details: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const said = (value: unknown): unknown => {
    try {
      return value === undefined ? undefined : toJson(value);
    } catch (error) {
      return error instanceof Error ? `(${error.message})` : "(not JSON)";
    }
  };
  return Object.fromEntries(Object.entries(details).map(([name, value]) => [name, said(value)]));
}

/** Takes out what no log should hold: values of fields that are named like secrets, tokens wherever they stand. */
const clean = redactor();

/**
 * The server's own log: one JSON object a line on stderr (words where that is a terminal), or wherever `sink` puts it. Without
 * secrets, as far as they can be told. Writing never throws, whatever the details hold: a line about a failure must not become
 * another one.
 * @param least the least severe level that is written
 */
export function createLog(server: string, least: LogLevel, sink?: (entry: LogEntry) => void): ServerLog {
  const toStderr = (entry: LogEntry): void => void process.stderr.write(`${JSON.stringify(entry)}\n`);
  const write = sink ?? createWriter(LEVELS);
  const from = LEVELS.indexOf(least);
  return (level, message, details = {}) => {
    if (LEVELS.indexOf(level) < from) return;
    const { error, ...rest } = details;
    // undefined can be thrown like anything else
    const about = !("error" in details)
      ? {}
      : { error: { ...serializeError(error), stack: error instanceof Error ? error.stack : undefined } };
    const fixed = { time: new Date().toISOString(), level, server, message: clean(message) };
    // first for the order of a line's parts, last because no detail may stand in for them
    const entry = { ...fixed, ...clean(printable({ ...rest, ...about })), ...fixed };
    try {
      write(entry);
    } catch (error) {
      // the program's sink failed: the line still exists somewhere, and the call goes on
      toStderr({ ...entry, sinkError: error instanceof Error ? error.message : "unknown" });
    }
  };
}
