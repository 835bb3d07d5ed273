import { codeOf } from "@tenon/core";
import {
  addressAttribute,
  type ContentOf,
  countCall,
  inSpan,
  noteOnSpan,
  type OpenSpan,
  openTelemetryApi,
  parseUrl,
  sessionAttribute,
} from "@tenon/core/internal";
import type { Connection } from "../connection/connection.ts";
import type { Endpoint } from "../connection/endpoint.ts";
import { endedAs } from "../interceptors/general.ts";
import { isSuspension } from "./marks.ts";
import { isToolResult } from "./results.ts";

/** Characters of a name or address on a span: a model may make up anything. */
const MAX_NAME = 200;

type Meta = Readonly<Record<string, unknown>>;
type Attributes = Readonly<Record<string, string | number>>;

/** Where a server is, as OpenTelemetry's conventions for MCP say it. */
function placeOf({ config }: Endpoint): Attributes {
  if ("command" in config) return { "network.transport": "pipe" };
  return "url" in config ? addressOf(config.url) : {};
}

/** Says which of a server's replicas a request went to: the last one, where it went to several. */
export function noteReplica({ config }: Endpoint, { place }: Pick<Connection, "place">): void {
  if (!("url" in config) && !("command" in config)) noteOnSpan(() => addressOf(place));
}

function addressOf(address: string): Attributes {
  const url = parseUrl(address);
  if (!url) return {};
  const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  return { "network.transport": "tcp", "server.address": url.hostname, "server.port": port };
}

/** What is known of a server only once it was spoken to. */
function spoken({ revision, sessionId }: Endpoint): Attributes {
  return {
    ...(revision !== undefined && { "mcp.protocol.version": revision }),
    ...(sessionId !== undefined && { "mcp.session.id": sessionAttribute(sessionId) }),
  };
}

/** What `_meta` is sent with, so that the server's span becomes a child of this one. */
const carried = (meta: Meta, span: OpenSpan | undefined): Meta => (span?.carrier ? { ...meta, ...span.carrier } : meta);

/** Whose call is traced, and what may be told of it. */
export interface TracedCall {
  readonly server: Endpoint;
  /** Whether the tool is one of the catalog: what callers make up becomes no label. */
  known(): boolean;
  readonly content: ContentOf | undefined;
}

/**
 * A tool call with its span and its numbers, from the first interceptor to the outcome. Where nobody registered telemetry this is a
 * call of `run`.
 * @param run gets the `_meta` that the call goes out with
 */
export function tracedCall<Outcome>(
  { server, known, content }: TracedCall,
  { tool, args, meta }: { readonly tool: string; readonly args: unknown; readonly meta: Meta },
  run: (meta: Meta) => Promise<Outcome>,
): Promise<Outcome> {
  if (!openTelemetryApi()) return run(meta);
  const began = performance.now();
  const ended = (outcome: string, span: OpenSpan | undefined): void => {
    const isKnown = known(); // by now: the first call is made before the catalog is there
    countCall({ side: "client", server: server.name, tool: isKnown ? tool : undefined, outcome, began });
    if (!isKnown) span?.rename("tools/call");
  };
  const name = tool.slice(0, MAX_NAME);
  const about = () => ({
    name: `tools/call ${name}`,
    kind: "client" as const,
    meta,
    words: content,
    expected: isSuspension,
    attributes: {
      "mcp.method.name": "tools/call",
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": name,
      "tenon.server": server.name,
      ...placeOf(server),
      ...(content && { "gen_ai.tool.call.arguments": content(args) }),
    },
  });
  return inSpan(about, async (span) => {
    try {
      const outcome = await run(carried(meta, span));
      const how = endedAs(outcome);
      ended(how, span);
      span?.set({ ...spoken(server), "tenon.outcome": how });
      if (how === "tool_error") span?.fail("tool_error");
      if (content && isToolResult(outcome)) span?.set({ "gen_ai.tool.call.result": content(outcome.content) });
      return outcome;
    } catch (error) {
      const how = isSuspension(error) ? "suspended" : codeOf(error) === "cancelled" ? "cancelled" : "error";
      ended(how, span);
      span?.set({ ...spoken(server), "tenon.outcome": how });
      throw error;
    }
  });
}

/** The requests that read. */
export type ReadMethod = "resources/read" | "prompts/get";

/** A request that reads, with its span. */
export function tracedRead<Answer>(
  server: Endpoint,
  { method, params, meta }: { readonly method: ReadMethod; readonly params: Meta; readonly meta: Meta },
  content: ContentOf | undefined,
  run: (meta: Meta) => Promise<Answer>,
): Promise<Answer> {
  const name = method === "resources/read" ? addressAttribute(params.uri) : String(params.name).slice(0, MAX_NAME);
  const about = () => ({
    // the address of a resource is one of any number
    name: method === "prompts/get" ? `${method} ${name}` : method,
    kind: "client" as const,
    meta,
    words: content,
    attributes: {
      "mcp.method.name": method,
      [method === "prompts/get" ? "gen_ai.prompt.name" : "mcp.resource.uri"]: name,
      "tenon.server": server.name,
      ...placeOf(server),
    },
  });
  return inSpan(about, async (span) => {
    try {
      return await run(carried(meta, span));
    } finally {
      span?.set(spoken(server));
    }
  });
}
