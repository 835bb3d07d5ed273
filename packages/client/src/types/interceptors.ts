import type { ToolCallOutcome, ToolCallRequest, ToolRuntime } from "./calls.ts";
import type { CatalogTool } from "./catalog.ts";

/** What an interceptor calls to go on: the next interceptor, at last the wire. */
export type Next<Runtime extends ToolRuntime = ToolRuntime, Extra = never> = (
  request: ToolCallRequest<Runtime>,
) => Promise<ToolCallOutcome<Extra>>;

/** Changes what a model sees of a tool: description, schema, title, annotations. Its names stay. */
export type CatalogChange = (tool: CatalogTool) => CatalogTool;

/**
 * A layer around every tool call. The first in the list is the outermost. It may answer without calling `next`, call it
 * several times, change the request with `request.with(…)`, or replace the outcome.
 */
export interface Interceptor<Runtime extends ToolRuntime = ToolRuntime, Extra = never> {
  (request: ToolCallRequest<Runtime>, next: Next<Runtime, Extra>): Promise<ToolCallOutcome<Extra>>;
  /** Applied by `listTools()`; calls still go to the tool as its server describes it. */
  readonly catalog?: CatalogChange;
}

/**
 * An interceptor for clients with this runtime and any outcome. The second signature is never called: it keeps such an
 * interceptor from having a say in which outcomes `createClient` infers.
 */
export interface RuntimeInterceptor<Runtime extends ToolRuntime> {
  <Extra>(request: ToolCallRequest<Runtime>, next: Next<Runtime, Extra>): Promise<ToolCallOutcome<Extra>>;
  (request: ToolCallRequest<Runtime>, next: never): Promise<never>;
  readonly catalog?: CatalogChange;
}

/** An interceptor for clients with any runtime and any outcome, as those that come with the package are. */
export interface AnyInterceptor {
  <Runtime extends ToolRuntime, Extra>(
    request: ToolCallRequest<Runtime>,
    next: Next<Runtime, Extra>,
  ): Promise<ToolCallOutcome<Extra>>;
  /** Never called, as above. */
  (request: never, next: never): Promise<never>;
  readonly catalog?: CatalogChange;
}
