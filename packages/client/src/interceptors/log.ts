import { ConfigError, serializeError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { isSuspension } from "../call/marks.ts";
import type { ToolCallRequest } from "../types/calls.ts";
import type { AnyInterceptor } from "../types/interceptors.ts";
import { endedAs, general, noteFactory } from "./general.ts";

/** How one call went. Plain JSON. */
export interface CallLine {
  /** When the call came in, ISO 8601. */
  readonly at: string;
  readonly server: string;
  readonly tool: string;
  readonly callId: string;
  /** Milliseconds it took, whole ones. */
  readonly ms: number;
  /**
   * `ok`; `tool_error` for a result with `isError`; `answered` for what an interceptor made instead of a result;
   * `suspended` when the call waits for an answer and comes again; `error` for everything thrown.
   */
  readonly outcome: "ok" | "tool_error" | "answered" | "suspended" | "error";
  /** Code of the error thrown; `unexpected` for one that is not Tenon's. */
  readonly code?: string;
  /** Only with `args`. */
  readonly args?: unknown;
}

/** Where the lines go. */
export interface LogOptions {
  /** Gets each line. Default: as JSON to stderr. One that throws is reported on stderr; the call goes on. */
  sink?: (line: CallLine) => void;
  /** What of the arguments is written. Default nothing, since they may hold secrets; `redactor(rules)` fits here. */
  args?: (args: ToolCallRequest["args"]) => unknown;
}

function toStderr(line: CallLine): void {
  process.stderr.write(`${JSON.stringify(line)}\n`);
}

/**
 * Writes one structured line per call, however it ends. Neither arguments nor messages of errors are in it.
 *
 * @throws ConfigError `unknown_option`
 * @example createClient({ servers, interceptors: [log({ sink: (line) => logger.info(line, "tool call") })] })
 */
export function log(options: LogOptions = {}): AnyInterceptor {
  checkOptions(options, ["sink", "args"], "log(options)");
  const { sink = toStderr, args } = options;
  for (const [name, value] of Object.entries({ sink, ...(args && { args }) })) {
    if (typeof value === "function") continue;
    throw new ConfigError(`log(options).${name} must be a function, got ${typeof value}`, { code: "invalid_option" });
  }

  return general(async (request, next) => {
    const at = new Date().toISOString();
    const started = performance.now();
    const done = (outcome: CallLine["outcome"], code?: string) => {
      const { server, name: tool, callId } = request;
      const ms = Math.round(performance.now() - started);
      try {
        const shown = args ? { args: args(request.args) } : {};
        sink(Object.freeze({ at, server, tool, callId, ms, outcome, ...(code !== undefined && { code }), ...shown }));
      } catch (error) {
        process.stderr.write(`tenon: a log line of ${callId} could not be written: ${String(error)}\n`);
      }
    };
    try {
      const outcome = await next(request);
      done(endedAs(outcome));
      return outcome;
    } catch (error) {
      if (isSuspension(error)) done("suspended");
      else done("error", serializeError(error).code);
      throw error;
    }
  });
}

noteFactory(log, "log()");
