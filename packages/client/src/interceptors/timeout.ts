import { ConfigError, ConnectionError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { ToolCallRequest } from "../types/calls.ts";
import type { AnyInterceptor } from "../types/interceptors.ts";
import { general, noteFactory } from "./general.ts";

/** How long calls may take, in milliseconds, with all that is inside: further interceptors, repetitions, questions. */
export interface TimeoutOptions {
  /** For tools that `tools` does not name. Left out, those have no limit here. */
  timeoutMs?: number;
  /** Per tool, by `"server/tool"` or by the tool's wire name. */
  tools?: Readonly<Record<string, number>>;
}

function tookTooLong({ server, name }: ToolCallRequest, ms: number): ConnectionError {
  return new ConnectionError(
    `tools/call ${name} on server "${server}" took longer than its ${ms} ms and was cancelled; the server may have ` +
      "carried it out. Check before you repeat it, or raise its limit",
    { code: "timeout", server, retryable: true, maybeExecuted: true, data: { ms } },
  );
}

/**
 * Ends calls that take longer than their tool may: the inner call is cancelled and the error says that it may have run.
 * The client's own `timeoutMs` ends silence instead, and starts anew with each sign of life.
 *
 * @throws ConfigError for a limit that is not positive; the interceptor throws ConnectionError `timeout`
 * @example createClient({ servers, interceptors: [timeout({ timeoutMs: 10_000, tools: { "order/export": 120_000 } })] })
 */
export function timeout(options: TimeoutOptions): AnyInterceptor {
  checkOptions(options, ["timeoutMs", "tools"], "timeout(options)");
  const { timeoutMs, tools = {} } = options;
  for (const [name, ms] of Object.entries({ ...tools, ...(timeoutMs !== undefined && { timeoutMs }) })) {
    if (ms > 0 && ms < 2 ** 31) continue;
    throw new ConfigError(
      `timeout(options): the limit of ${name} must be a positive number of milliseconds, got ${ms}`,
      {
        code: "invalid_option",
      },
    );
  }
  const limits = new Map(Object.entries(tools));

  return general(async (request, next) => {
    const ms = limits.get(`${request.server}/${request.name}`) ?? limits.get(request.name) ?? timeoutMs;
    if (ms === undefined) return next(request);
    const ending = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = tookTooLong(request, ms);
        reject(error);
        ending.abort(error);
      }, ms);
    });
    try {
      return await Promise.race([next(request.with({ signal: ending.signal })), late]);
    } finally {
      clearTimeout(timer);
    }
  });
}

noteFactory(timeout, "timeout({ timeoutMs: 20_000 })");
