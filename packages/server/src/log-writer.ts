import { createRequire } from "node:module";
import { cleanText, isRecord } from "@tenon/core";
import type { DestinationStream, Logger, LoggerOptions } from "pino";
import type { LogEntry, LogLevel } from "./log.ts";

/** How lines look: one JSON object each, or words for a person. */
type Format = "json" | "pretty";

const toStderr = { write: (line: string): void => void process.stderr.write(line) };
/** Whoever read the log may be gone (a closed pipe); without a listener that would end the process, and its calls with it. */
const ignoreLoss = (): void => undefined;
const require = createRequire(import.meta.url);

/** Writes JSON, in the order of the entry's parts. Made with the first line: loading pino takes as long as a server's start should. */
function createJson(levels: readonly LogLevel[]): (entry: LogEntry) => void {
  const pino = require("pino") as (
    options: LoggerOptions<LogLevel, true>,
    stream: DestinationStream,
  ) => Logger<LogLevel, true>; // its main function
  const logger = pino(
    {
      base: null,
      timestamp: false, // the entry has its own
      level: "debug",
      customLevels: Object.fromEntries(levels.map((level, index) => [level, (index + 1) * 10])) as Record<
        LogLevel,
        number
      >, // all of them
      useOnlyCustomLevels: true,
      formatters: { level: (label) => ({ level: label }) },
    },
    toStderr,
  );
  return ({ level, ...entry }) => logger[level](entry);
}

const SHOWN: Record<LogLevel, string> = {
  debug: "debug",
  info: "info ",
  notice: "note ",
  warning: "WARN ",
  error: "ERROR",
};

/** A detail in a few characters. */
function shown(value: unknown): string {
  const text = typeof value === "string" && /^[\w./:@+-]+$/.test(value) ? value : JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}

/** An entry for a person at a terminal: what others wrote cannot move the cursor. */
export function prettyLine({ time, level, server, message, error, ...details }: LogEntry): string {
  const about = Object.entries(details).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${shown(value)}`],
  );
  const [first = "", ...rest] = [message, ...about].map((part) => cleanText(part).replaceAll("\n", " "));
  const clock = time.slice(11, 19);
  const failure = isRecord(error) ? String(error.stack ?? error.message ?? "") : "";
  const stack =
    failure === ""
      ? ""
      : `${cleanText(failure)
          .split("\n")
          .map((line) => `    ${line}`)
          .join("\n")}\n`;
  return `${clock} ${SHOWN[level]} ${server}: ${first}${rest.length > 0 ? `  ${rest.join(" ")}` : ""}\n${stack}`;
}

/** What lines look like: what `TENON_LOG_FORMAT` says, else words where a person sits at the other end. */
export function formatOf(wanted: string | undefined, terminal: boolean | undefined): Format {
  if (wanted === "json" || wanted === "pretty") return wanted;
  return terminal ? "pretty" : "json";
}

/** Writes entries to stderr. @param levels all there are, the least severe first */
export function createWriter(levels: readonly LogLevel[]): (entry: LogEntry) => void {
  let json: ((entry: LogEntry) => void) | undefined;
  const format = formatOf(process.env.TENON_LOG_FORMAT, process.stderr.isTTY);
  if (!process.stderr.listeners("error").includes(ignoreLoss)) process.stderr.on("error", ignoreLoss);
  return (entry) => {
    if (format === "pretty") return toStderr.write(prettyLine(entry));
    json ??= createJson(levels);
    json(entry);
  };
}
