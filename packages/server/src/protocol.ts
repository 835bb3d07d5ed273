import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type ClientCapabilities,
  type Implementation,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Era } from "@tenon/core";
import type { Caller, ClientDescription, Exchange } from "./context.ts";
import { dispatch, METHODS, type Service } from "./dispatch.ts";
import { wireExtensions } from "./extension-wiring.ts";

/** How a server introduces itself. */
export interface Introduction {
  name: string;
  version: string;
  title?: string | undefined;
  instructions?: string | undefined;
}

/** Questions one call may ask before it is stopped: far above what people bear, low enough to end a loop. */
const MAX_ROUNDS = 32;

function describeClient(server: Server, ctx: ServerContext, era: Era): ClientDescription {
  // the envelope is keyed by the protocol's full `_meta` names; the SDK validated it, its type says nothing
  const envelope = (ctx.mcpReq.envelope ?? {}) as {
    [CLIENT_INFO_META_KEY]?: Implementation;
    [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities;
  };
  const info = era === "modern" ? envelope[CLIENT_INFO_META_KEY] : server.getClientVersion();
  const capabilities = era === "modern" ? envelope[CLIENT_CAPABILITIES_META_KEY] : server.getClientCapabilities();
  return { name: info?.name, version: info?.version, capabilities: capabilities ?? {} };
}

/** One request of the SDK's protocol layer as the dispatcher sees it. */
function exchangeOf(server: Server, ctx: ServerContext, era: Era): Exchange {
  const { mcpReq } = ctx;
  return {
    era,
    requestId: mcpReq.id,
    sessionId: ctx.sessionId,
    signal: mcpReq.signal,
    meta: mcpReq._meta ?? {},
    headers: ctx.http?.req?.headers,
    caller: ctx.http?.authInfo?.extra?.caller as Caller | undefined, // set by our HTTP side only
    client: describeClient(server, ctx, era),
    requestState: mcpReq.requestState<string>(),
    inputResponses: mcpReq.inputResponses,
    notify: (method, params) => mcpReq.notify({ method, params }),
    log: (level, data, logger) => mcpReq.log(level, data, logger),
  };
}

/**
 * A protocol instance over the shared registry: cheap to make, since schemas and lists are compiled already. It speaks the
 * wire (framing, eras, errors); what is offered lives in `service`.
 */
export function createProtocol(service: Service, introduction: Introduction, era: Era): Server {
  const { instructions, ...info } = introduction;
  const { registry } = service;
  const server = new Server(
    { name: info.name, version: info.version, ...(info.title !== undefined && { title: info.title }) },
    {
      capabilities: {
        tools: {},
        logging: {},
        ...((registry.lists.resources.length > 0 || registry.lists.templates.length > 0) && { resources: {} }),
        ...(registry.prompts.size > 0 && { prompts: {} }),
      },
      ...(instructions !== undefined && { instructions }),
      inputRequired: { maxRounds: MAX_ROUNDS },
    },
  );
  server.onerror = (error) => service.log("warning", "protocol error", { error });
  for (const method of METHODS) {
    const offered =
      method.startsWith("tools/") ||
      (method.startsWith("prompts/")
        ? registry.prompts.size > 0
        : registry.lists.resources.length + registry.lists.templates.length > 0);
    if (!offered) continue;
    server.setRequestHandler(
      method,
      (request, ctx) =>
        // the SDK parsed the request and validates the result against the method's schema
        dispatch(
          service,
          method,
          (request.params ?? {}) as Record<string, unknown>,
          exchangeOf(server, ctx, era),
        ) as never,
    );
  }
  wireExtensions(server, service, era, (ctx) => exchangeOf(server, ctx, era));
  return server;
}
