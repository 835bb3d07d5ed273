import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type ClientCapabilities,
  type Implementation,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  Server,
  type ServerContext,
  type ServerOptions,
} from "@modelcontextprotocol/server";
import type { Era } from "@tenon/core";
import { shownHeaders } from "../auth/bearer.ts";
import { ContractedServer } from "../contract/announcing.ts";
import type { Viewer } from "../definition/access.ts";
import type { Registry } from "../definition/registry.ts";
import { wireExtensions } from "../extension/extension-wiring.ts";
import type { Caller, ClientDescription, Exchange } from "../handler/context.ts";
import { remoteAddressOf } from "../http/remote-address.ts";
import { requestLog } from "../log.ts";
import { dispatch, METHODS, type Method, type Service } from "./dispatch.ts";
import type { Bus } from "./notify.ts";
import { MAX_WATCHED, MAX_WATCHED_CHARS } from "./params.ts";
import { hidesFrom } from "./subscriptions.ts";
import { withValidTrace } from "./trace.ts";
import { traced } from "./traced.ts";

/** How a server introduces itself. */
export interface Introduction {
  name: string;
  version: string;
  title?: string | undefined;
  instructions?: string | undefined;
}

/** Questions one call may ask before it is stopped: far above what people bear, low enough to end a loop. */
const MAX_ROUNDS = 32;

/** The name that goes out with every modern answer and with `initialize`. */
export function identityOf({ name, version, title }: Introduction): Implementation {
  return { name, version, ...(title !== undefined && { title }) };
}

/** Whether a server has anything to answer `method` with; else the method does not exist. */
export function offers(registry: Registry, method: Method): boolean {
  if (method.startsWith("prompts/")) return registry.prompts.size > 0;
  if (method.startsWith("resources/")) return registry.lists.resources.length + registry.lists.templates.length > 0;
  if (method.startsWith("completion/")) return registry.prompts.size + registry.lists.templates.length > 0;
  return true;
}

/** Whether an era has `method` here; of those that are not ours, only subscriptions are the modern era's. */
export function exists(registry: Registry, method: string, era: Era): boolean {
  const own = METHODS.find((known) => known === method);
  return own === undefined ? (method === "subscriptions/listen") === (era === "modern") : offers(registry, own);
}

/**
 * Runs the dispatcher so that only protocol errors leave it: whatever else escapes is a defect of ours, for the log alone.
 */
export async function answer(
  service: Service,
  method: Method,
  params: Record<string, unknown>,
  exchange: Exchange,
): Promise<Result> {
  return traced(service, method, params, exchange, async () => {
    try {
      service.contract?.admit(method, exchange);
      return await dispatch(service, method, params, exchange);
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      requestLog(service.log, exchange)("error", `${method} failed`, { error });
      throw new ProtocolError(ProtocolErrorCode.InternalError, "Internal error");
    }
  });
}

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
function exchangeOf({ authenticated }: Service, server: Server, ctx: ServerContext, era: Era): Exchange {
  const { mcpReq } = ctx;
  const caller = ctx.http?.authInfo?.extra?.caller as Caller | undefined; // set by our HTTP side only
  return {
    era,
    requestId: mcpReq.id,
    sessionId: ctx.sessionId,
    signal: mcpReq.signal,
    meta: withValidTrace(mcpReq._meta ?? {}),
    headers: shownHeaders(ctx.http?.req?.headers, { authenticated, caller }),
    remoteAddress: remoteAddressOf(ctx.http?.req),
    caller,
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
  const { instructions } = introduction;
  const { registry } = service;
  // what is announced may depend on the contract's version that was asked for
  const personal = service.authenticated || service.contract !== undefined;
  const discover = service.cacheHints("server/discover", personal ? { scope: "private" } : undefined);
  const options: ServerOptions = {
    capabilities: {
      tools: { listChanged: true },
      logging: {},
      ...(offers(registry, "resources/list") && { resources: { subscribe: true, listChanged: true } }),
      ...(offers(registry, "prompts/list") && { prompts: { listChanged: true } }),
      ...(offers(registry, "completion/complete") && { completions: {} }),
    },
    ...(instructions !== undefined && { instructions }),
    cacheHints: { "server/discover": discover },
    inputRequired: { maxRounds: MAX_ROUNDS },
  };
  const { contract } = service;
  const server = contract
    ? new ContractedServer(identityOf(introduction), options, { contract, era, discover })
    : new Server(identityOf(introduction), options);
  server.onerror = (error) => service.log("warning", "protocol error", { error });
  for (const method of METHODS) {
    if (!offers(registry, method)) continue;
    server.setRequestHandler(
      method,
      (request, ctx) =>
        // the SDK parsed the request and validates the result against the method's schema
        answer(
          service,
          method,
          (request.params ?? {}) as Record<string, unknown>,
          exchangeOf(service, server, ctx, era),
        ) as never,
    );
  }
  wireExtensions(server, service, era, (ctx) => exchangeOf(service, server, ctx, era));
  return server;
}

/**
 * A protocol instance that stays (a legacy session, stdio): it also hears of changes, and a legacy client says by
 * `resources/subscribe` which resources it watches. On the modern era the SDK's router holds the subscriptions.
 * @param listeners who hears what is told: another token may have subscribed, which sees more than they do
 */
export function createLastingProtocol(
  service: Service,
  introduction: Introduction,
  era: Era,
  bus: Bus,
  listeners: () => Iterable<Viewer> = () => [],
): Server {
  const server = createProtocol(service, introduction, era);
  const watched = new Set<string>();
  let chars = 0;
  if (era === "legacy" && offers(service.registry, "resources/list")) {
    server.setRequestHandler("resources/subscribe", ({ params }, ctx) => {
      // answered like an address where nothing is: of what is hidden, not even that it changes is told
      if (watched.has(params.uri) || hidesFrom(service, params.uri, exchangeOf(service, server, ctx, era))) return {};
      if (watched.size >= MAX_WATCHED || chars + params.uri.length > MAX_WATCHED_CHARS) {
        throw new ProtocolError(
          ProtocolErrorCode.InvalidParams,
          `A session may watch ${MAX_WATCHED} resources with ${MAX_WATCHED_CHARS} characters of addresses together; unsubscribe from some first`,
        );
      }
      watched.add(params.uri);
      chars += params.uri.length;
      return {};
    });
    server.setRequestHandler("resources/unsubscribe", ({ params }) => {
      if (watched.delete(params.uri)) chars -= params.uri.length;
      return {};
    });
  }
  const mayHear = (uri: string): boolean => ![...listeners()].some((viewer) => hidesFrom(service, uri, viewer));
  const unfollow = bus.follow(server, (uri) => era === "modern" || (watched.has(uri) && mayHear(uri)));
  server.onclose = unfollow;
  return server;
}
