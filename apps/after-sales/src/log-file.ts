import { appendFileSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { redactor } from "@tenon/client/interceptors";

const LOG_BYTES = 5 * 1024 * 1024;
/** Causes of an error that are written down; a chain may be a circle. */
const CAUSES = 5;
const clean = redactor();

/** The path of a log beside the data; one that has grown large starts over. */
export function logFile(dataDirectory: string, name: string): string {
  const path = join(dataDirectory, `${name}.log`);
  try {
    if (statSync(path).size > LOG_BYTES) truncateSync(path);
  } catch {
    // no log yet
  }
  return path;
}

/** An error with its causes. */
function storyOf(error: unknown): string {
  const parts: string[] = [];
  for (
    let one = error;
    one !== undefined && parts.length < CAUSES;
    one = one instanceof Error ? one.cause : undefined
  ) {
    parts.push(one instanceof Error ? (one.stack ?? String(one)) : String(one));
  }
  return parts.join("\ncaused by ");
}

/** Keeps errors of which a person is told only a reference, in `<data>/chat.log`. */
export function errorLog(dataDirectory: string): (error: unknown, reference: string) => void {
  return (error, reference) => {
    const line = `${new Date().toISOString()} ${reference} ${clean(storyOf(error))}\n`;
    appendFileSync(logFile(dataDirectory, "chat"), line, { mode: 0o600 });
  };
}
