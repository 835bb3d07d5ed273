import type { Result } from "@modelcontextprotocol/server";
import { ConfigError, isRecord } from "@tenon/core";
import type { Exchange } from "../handler/context.ts";
import type { ServerLog } from "../log.ts";

/** What a request is about, where it names a definition that exists for its caller. */
export interface RequestTarget {
  /** What it is. */
  readonly kind: "tool" | "resource" | "prompt";
  /** Its `tags`. */
  readonly tags: readonly string[];
  /** A resource, or a tool that says `readOnlyHint`. */
  readonly readOnly: boolean;
}

/** One request as middleware sees it. */
export interface ServerRequest
  extends Pick<
    Exchange,
    "caller" | "client" | "era" | "requestId" | "sessionId" | "signal" | "meta" | "headers" | "remoteAddress"
  > {
  /** For example `"tools/call"`. */
  readonly method: string;
  /** The tool's or prompt's name, or the resource's URI. */
  readonly name: string | undefined;
  /** The request's parameters, without `_meta`. */
  readonly params: Readonly<Record<string, unknown>>;
  /** The tool, resource or prompt it is about; undefined for lists and for what is not there for this caller. */
  readonly target: RequestTarget | undefined;
  /** It continues a call that asked something: it carries answers or a state. */
  readonly resumed: boolean;
  /** The server's own log. */
  readonly log: ServerLog;
}

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
  const at = async (layer: number, current: ServerRequest): Promise<Result> => {
    const here = middleware[layer];
    if (!here) return core(current);
    const next: Next = (changed = current) => {
      const inner = at(layer + 1, changed);
      inner.catch(() => undefined); // a middleware that does not wait for it must not end the process by its failure
      return inner;
    };
    const result: unknown = await here(current, next);
    if (isRecord(result)) return result;
    throw new ConfigError(
      `middleware ${here.name || layer + 1} returned ${typeof result}: return the result of next()`,
      {
        code: "middleware",
      },
    );
  };
  return at(0, request);
}
