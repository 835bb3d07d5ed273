import { ProtocolError } from "@modelcontextprotocol/server";
import { checkOptions } from "@tenon/core/internal";
import type { LogLevel } from "../log.ts";
import type { Middleware } from "./onion.ts";

/** How requests are logged. */
export interface LogOptions {
  /** Level of a request that went well. Failed ones are warnings. Default `info`. */
  level?: LogLevel;
}

function outcomeOf(result: Record<string, unknown>): "ok" | "error" | "asked" {
  if (result.isError === true) return "error";
  return result.resultType === "input_required" ? "asked" : "ok";
}

/**
 * One line per request in the server's own log: method, name, caller, milliseconds and how it ended (`ok`, `error`, `asked`
 * for a question, `refused` for what the protocol or middleware further in refused). Arguments and results are not logged: they belong to the caller.
 *
 * @example server.use(log({ level: "debug" }))
 */
export function log(options: LogOptions = {}): Middleware {
  checkOptions(options, ["level"], "log(options)");
  const { level = "info" } = options;
  return async (request, next) => {
    const started = performance.now();
    const write = (outcome: string, more: Record<string, unknown> = {}): void =>
      request.log(outcome === "ok" || outcome === "asked" ? level : "warning", `${request.method} ${outcome}`, {
        method: request.method,
        ...(request.name !== undefined && { name: request.name }),
        ...(request.caller && { caller: request.caller.subject }),
        requestId: request.requestId,
        era: request.era,
        outcome,
        durationMs: Math.round(performance.now() - started),
        ...more,
      });
    try {
      const result = await next();
      write(outcomeOf(result));
      return result;
    } catch (error) {
      // the cause is logged where the error is turned into an answer
      write("refused", error instanceof ProtocolError ? { code: error.code } : {});
      throw error;
    }
  };
}
