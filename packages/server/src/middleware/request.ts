import type { JsonObject } from "@tenon/core";
import { isListed } from "../definition/access.ts";
import type { Service } from "../dispatch/dispatch.ts";
import type { Exchange } from "../handler/context.ts";
import { requestLog, type ServerLog } from "../log.ts";

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
  /** The context that the server's contract asks for, checked and frozen; undefined where it has none. */
  readonly context: Readonly<JsonObject> | undefined;
  /** It continues a call that asked something: it carries answers or a state. */
  readonly resumed: boolean;
  /** The server's own log. */
  readonly log: ServerLog;
}

/** What the request is about, as far as its caller may know. */
function targetOf(
  { registry }: Service,
  method: string,
  name: string | undefined,
  exchange: Exchange,
): RequestTarget | undefined {
  if (name === undefined) return undefined;
  const found =
    method === "tools/call"
      ? { kind: "tool" as const, of: registry.tools.get(name) }
      : method === "prompts/get"
        ? { kind: "prompt" as const, of: registry.prompts.get(name) }
        : { kind: "resource" as const, of: registry.findResource(name, exchange)?.resource };
  if (!found.of || !isListed(found.of.access, exchange)) return undefined;
  const hints = "name" in found.of && "modern" in found.of.listing ? found.of.listing.modern.annotations : undefined;
  return {
    kind: found.kind,
    tags: found.of.tags,
    readOnly: found.kind === "resource" || (found.kind === "tool" && hints?.readOnlyHint === true),
  };
}

/** The request as middleware sees it. */
export function requestOf(
  service: Service,
  method: string,
  params: Record<string, unknown>,
  exchange: Exchange,
): ServerRequest {
  const given = params.name ?? params.uri;
  const name = typeof given === "string" ? given : undefined;
  const { caller, client, era, requestId, meta, accepted } = exchange;
  const resumed = exchange.requestState !== undefined || exchange.inputResponses !== undefined;
  const target = targetOf(service, method, name, exchange);
  return {
    method,
    name,
    params,
    target,
    resumed,
    log: requestLog(service.log, exchange),
    caller,
    client,
    era,
    requestId,
    sessionId: exchange.sessionId ?? accepted?.session,
    context: accepted?.context,
    meta,
    // made when somebody looks: most middleware never does. Own properties, so that `{ ...request, params }` has them
    get signal() {
      return exchange.signal;
    },
    get headers() {
      return exchange.headers;
    },
    get remoteAddress() {
      return exchange.remoteAddress;
    },
  };
}
