import { isInputRequiredResult, ProtocolError, type Result } from "@modelcontextprotocol/server";
import { ExecutionError } from "@tenon/core";
import type { dispatch, Service } from "../dispatch/dispatch.ts";
import type { Exchange, ToolContext } from "./context.ts";

/** One part of a resource, as a handler reads it. */
export interface ResourceContents {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  /** Base64. */
  readonly blob?: string;
}

/** One message of a prompt, as a handler reads it. */
export interface PromptMessage {
  readonly role: "user" | "assistant";
  readonly content: { readonly type: string; readonly text?: string };
}

/** What a handler may use of the server it belongs to. */
export type InnerReading = Pick<ToolContext, "readResource" | "getPrompt">;

/** A request of a handler to its own server: the same caller, but no part in the outer request's questions. */
function innerExchange(outer: Exchange): Exchange {
  return {
    era: outer.era,
    requestId: outer.requestId,
    sessionId: outer.sessionId,
    signal: outer.signal,
    meta: {},
    headers: outer.headers,
    remoteAddress: outer.remoteAddress,
    caller: outer.caller,
    client: outer.client,
    accepted: outer.accepted,
    notify: (method, params) => outer.notify(method, params),
    log: (level, data, logger) => outer.log(level, data, logger),
  };
}

/** Lets a handler read what its own server offers. */
export function createInnerReading(answer: typeof dispatch, service: Service, exchange: Exchange): InnerReading {
  async function ask(method: "resources/read" | "prompts/get", params: Record<string, unknown>): Promise<Result> {
    const what = `${method} ${String(params.uri ?? params.name)} inside a handler`;
    let result: Result;
    try {
      result = await answer(service, method, params, innerExchange(exchange));
    } catch (cause) {
      if (!(cause instanceof ProtocolError)) throw cause;
      throw new ExecutionError(`${what} failed: ${cause.message}`, { code: "inner_request", cause });
    }
    if (!isInputRequiredResult(result)) return result;
    throw new ExecutionError(`${what} asks the person a question; ask it in this handler, with ctx.elicit`, {
      code: "inner_request",
    });
  }
  return {
    // the dispatcher made both results: they have the shape of their method
    readResource: async (uri) => (await ask("resources/read", { uri })).contents as ResourceContents[],
    getPrompt: async (name, args = {}) =>
      (await ask("prompts/get", { name, arguments: args })).messages as PromptMessage[],
  };
}
