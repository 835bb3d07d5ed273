import type { Interceptor, ToolCallOutcome, ToolCallRequest, ToolRuntime } from "./types.ts";

type Handler<Runtime extends ToolRuntime, Extra> = (
  request: ToolCallRequest<Runtime>,
) => Promise<ToolCallOutcome<Extra>>;

/**
 * Puts the interceptors around `core`, the first one outermost. Each `next` may be called any number of times, since it
 * holds no state.
 */
export function composeInterceptors<Runtime extends ToolRuntime, Extra>(
  interceptors: ReadonlyArray<Interceptor<Runtime, Extra>>,
  core: Handler<Runtime, Extra>,
): Handler<Runtime, Extra> {
  // async, so that an interceptor that throws before it returns a promise still rejects
  return interceptors.reduceRight<Handler<Runtime, Extra>>(
    (next, interceptor) => async (request) => interceptor(request, next),
    core,
  );
}
