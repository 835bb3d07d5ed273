import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions, shownValue } from "@tenon/core/internal";
import { ToolError } from "../errors.ts";
import type { Middleware } from "./onion.ts";
import type { ServerRequest } from "./request.ts";

/** Which argument names the caller, and how. */
export interface MatchCallerOptions {
  /** The argument, such as `"caller_id"`. Tools without it, and calls that leave it out or empty, are none of this rule's business. */
  argument: string;
  /** The token's subject that a value stands for. Default: the value itself. */
  subjectOf?: (value: string) => string;
  /** What the caller of a refused call reads. Default: an English sentence that names argument, value and subject. */
  message?: (value: string, request: ServerRequest) => string;
}

/** An argument names somebody else than the token does. `data.code` is `"caller_mismatch"`. */
export class CallerMismatchError extends ToolError {
  constructor(message: string) {
    super(message, { code: "caller_mismatch", data: { code: "caller_mismatch" } });
  }
}

/**
 * Refuses tool calls whose argument names another caller than the verified token. The token alone says who calls: an argument is
 * information, for logs and business rules, and information that contradicts the token is a mistake or an attempt. Without a
 * token (stdio, a server without `auth`) there is nothing to compare with.
 *
 * @throws ConfigError `code: "match_caller"` without an argument's name; the middleware throws CallerMismatchError
 * @example server.use(matchCaller({ argument: "caller_id", subjectOf: (value) => value.replace(/\(.*\)$/, "") })) // "u1(Ann)"
 */
export function matchCaller(options: MatchCallerOptions): Middleware {
  checkOptions(options, ["argument", "subjectOf", "message"], "matchCaller(options)");
  const { argument, subjectOf = (value) => value, message } = options;
  if (typeof argument !== "string" || argument === "") {
    throw new ConfigError('matchCaller(options) needs the name of an argument, such as "caller_id"', {
      code: "match_caller",
    });
  }
  return (request, next) => {
    const { method, params, caller } = request;
    if (method !== "tools/call" || caller === undefined || !isRecord(params.arguments)) return next();
    const given = params.arguments[argument];
    if (given === undefined || given === null || given === "") return next();
    if (typeof given === "string" && subjectOf(given) === caller.subject) return next();
    const value = typeof given === "string" ? given : JSON.stringify(given);
    throw new CallerMismatchError(
      message?.(value, request) ??
        `${argument} ${shownValue(value, 100)} is not the caller: the token is of ${shownValue(caller.subject, 100)}. ` +
          "Leave it out, or call with that person's own token",
    );
  };
}
