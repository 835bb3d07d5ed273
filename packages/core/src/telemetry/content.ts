import { messageOf } from "../errors.ts";
import { toJson } from "../json.ts";
import { checkOptions, type OptionCheck } from "../options.ts";
import { type RedactRules, redactor } from "../redactor.ts";

/** What traces may tell, beside names, times and how it ended. */
export interface TelemetryOptions {
  /**
   * Whether arguments, results and the words of errors become attributes of spans: `true` after the default rules of redaction, or
   * after rules of your own. Default: they do not leave the process.
   */
  content?: boolean | RedactRules;
}

/** Characters of one value on a span. */
const MAX_CHARS = 4_096;

/** Makes a value an attribute: without what is secret, as JSON, cut to 4,096 characters. Never throws. */
export type ContentOf = (value: unknown) => string;

/** Refuses options of telemetry that nobody understands. @throws ConfigError */
export const checkTelemetry: OptionCheck = (given, where) => {
  const isContent: OptionCheck = (content, at) => {
    if (typeof content === "boolean") return;
    checkOptions(content as object, ["keys", "patterns", "replacement"], at); // it refuses what is none
    redactor(content as RedactRules);
  };
  checkOptions(given as object, { content: isContent }, where);
};

/** How contents become attributes; undefined where they may not. */
export function contentOf({ content = false }: TelemetryOptions = {}): ContentOf | undefined {
  if (content === false) return undefined;
  const clean = redactor(content === true ? {} : content);
  const textOf = (value: unknown): string => {
    if (typeof value === "string") return clean(value);
    try {
      return JSON.stringify(clean(toJson(value)));
    } catch (error) {
      return `(${messageOf(error)})`; // what is observed goes on, whatever a caller gave it
    }
  };
  return (value) => {
    const text = textOf(value);
    return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS - 1)}…` : text;
  };
}
