import { isToolResult } from "../call/results.ts";
import type { ToolCallOutcome, ToolCallRequest, ToolRuntime } from "../types/calls.ts";
import type { AnyInterceptor, CatalogChange, Next, RuntimeInterceptor } from "../types/interceptors.ts";

/** The factories of this package by themselves, with how each is written in a list of interceptors. */
const factories = new WeakMap<object, string>();

/** Notes that a function makes interceptors and is none, so that a client can say so when the call was forgotten. */
export function noteFactory(factory: object, written: string): void {
  factories.set(factory, written);
}

/** A factory of this package, and how it is written in a list of interceptors; undefined for anything else. */
export function factoryOf(given: unknown): { name: string; written: string } | undefined {
  const written = typeof given === "function" ? factories.get(given) : undefined;
  // what is noted above is called by the first word of how it is written
  return written === undefined ? undefined : { name: written.replace(/\(.*/s, ""), written };
}

/**
 * How a call ended that threw nothing, for logs and audits. A task that was only started comes again: whoever follows it writes down
 * how it ends.
 */
export function endedAs(outcome: unknown): "ok" | "tool_error" | "answered" | "suspended" {
  if (!isToolResult(outcome)) return "answered";
  if (outcome.task) return "suspended";
  return outcome.isError ? "tool_error" : "ok";
}

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
