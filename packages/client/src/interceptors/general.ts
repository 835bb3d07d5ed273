import type { ToolCallOutcome, ToolCallRequest, ToolRuntime } from "../types/calls.ts";
import type { AnyInterceptor, CatalogChange, Next, RuntimeInterceptor } from "../types/interceptors.ts";

/** Makes an interceptor for clients with any runtime and any outcome. */
export function general(
  interceptor: <Runtime extends ToolRuntime, Extra>(
    request: ToolCallRequest<Runtime>,
    next: Next<Runtime, Extra>,
  ) => Promise<ToolCallOutcome<Extra>>,
): AnyInterceptor {
  return interceptor as AnyInterceptor; // its second signature is never called
}

/** Makes an interceptor for clients with this runtime and any outcome, which may change what a model sees. */
export function forRuntime<Runtime extends ToolRuntime>(
  interceptor: <Extra>(
    request: ToolCallRequest<Runtime>,
    next: Next<Runtime, Extra>,
  ) => Promise<ToolCallOutcome<Extra>>,
  catalog: CatalogChange,
): RuntimeInterceptor<Runtime> {
  return Object.assign(interceptor as RuntimeInterceptor<Runtime>, { catalog }); // its second signature is never called
}
