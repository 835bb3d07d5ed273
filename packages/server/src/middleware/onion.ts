import type { Result } from "@modelcontextprotocol/server";
import { ConfigError, isRecord } from "@tenon/core";
import { runLayers } from "@tenon/core/internal";
import type { ServerRequest } from "./request.ts";

/**
 * Goes on to the next middleware, at last to the handler.
 * @param request a changed copy, for example `{ ...request, params }`; default: the same. Only `params` reach the handler
 */
export type Next = (request?: ServerRequest) => Promise<Result>;

/**
 * Stands around every request: looks at it, answers it itself, or goes on with `next` and may change the result. What it
 * throws reaches the caller as what a handler throws: a `ToolError` verbatim, anything else masked.
 *
 * @example server.use(async (request, next) => { const result = await next(); count(request.method); return result; })
 */
export type Middleware = (request: ServerRequest, next: Next) => Result | Promise<Result>;

/** Runs `middleware` around `core`, the first one outermost. */
export function runOnion(
  middleware: readonly Middleware[],
  request: ServerRequest,
  core: (request: ServerRequest) => Promise<Result>,
): Promise<Result> {
  return runLayers<ServerRequest, Result, ServerRequest | undefined, Middleware>(
    {
      layers: middleware,
      core,
      enter: (given, outer) => given ?? outer,
      check(result: unknown, { name }, index) {
        if (isRecord(result)) return result;
        throw new ConfigError(
          `middleware ${name || index + 1} returned ${typeof result}: return the result of next()`,
          { code: "middleware" },
        );
      },
    },
    request,
  );
}
