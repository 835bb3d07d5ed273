import { ConfigError, deserializeError, type RedactRules, TenonError } from "@tenon/core";
import { checkOptions, redactor } from "@tenon/core/internal";
import { isToolResult } from "../call/results.ts";
import type { AnyInterceptor } from "../types/interceptors.ts";
import { general, noteFactory } from "./general.ts";

/** What is secret, and where it is taken out. */
export interface RedactOptions extends RedactRules {
  /** Default both: what is sent, and what comes back. */
  in?: readonly ("arguments" | "results")[];
}

/**
 * Takes secrets and personal data out of the arguments that are sent and of the results (blocks, text, structured content,
 * `_meta`, `raw`) and errors that come back. Nothing given is changed in place. What an inner interceptor made instead of
 * a result passes as it is, so put this one innermost.
 *
 * @throws ConfigError for rules nobody understands
 * @example createClient({ servers, interceptors: [redact({ in: ["results"], patterns: ["email", "card"] })] })
 */
export function redact(options: RedactOptions = {}): AnyInterceptor {
  checkOptions(options, ["keys", "patterns", "replacement", "in"], "redact(options)");
  const { in: places = ["arguments", "results"], ...rules } = options;
  for (const place of places) {
    if (place === "arguments" || place === "results") continue;
    throw new ConfigError(`redact(options).in takes "arguments" and "results", got ${JSON.stringify(place)}`, {
      code: "invalid_option",
    });
  }
  const clean = redactor(rules);
  const sent = places.includes("arguments");
  const received = places.includes("results");

  return general(async (request, next) => {
    const args = sent ? clean(request.args) : request.args;
    const inner = args === request.args ? request : request.with({ args });
    if (!received) return next(inner);
    try {
      const outcome = await next(inner);
      if (!isToolResult(outcome)) return outcome;
      const cleaned = clean(outcome);
      return cleaned === outcome ? outcome : Object.freeze(cleaned);
    } catch (error) {
      if (!(error instanceof TenonError)) throw error;
      const written = error.toJSON();
      const cleaned = clean(written);
      // without the cause, which would still say it
      throw cleaned === written ? error : deserializeError(cleaned);
    }
  });
}

noteFactory(redact, "redact()");
