import { ProtocolError, ProtocolErrorCode, type Result } from "@modelcontextprotocol/server";
import {
  addressAttribute,
  countCall,
  inSpan,
  LEGACY_REVISION,
  MODERN_REVISION,
  openTelemetryApi,
  type SpanAbout,
  sessionAttribute,
} from "@tenon/core/internal";
import type { Exchange } from "../handler/context.ts";
import type { Service } from "./dispatch.ts";

/** Characters of a name or address on a span: a caller may send anything. */
const MAX_NAME = 200;

type Attributes = Record<string, string | number>;

/** What OpenTelemetry's conventions for MCP call what a request is about, by its method. */
const TARGETS: Readonly<Record<string, string>> = {
  "tools/call": "gen_ai.tool.name",
  "prompts/get": "gen_ai.prompt.name",
  "resources/read": "mcp.resource.uri",
};

function transportOf({ remoteAddress, headers }: Exchange): Attributes {
  if (remoteAddress !== undefined) return { "network.transport": "tcp", "client.address": remoteAddress };
  return { "network.transport": headers === undefined ? "pipe" : "unix" };
}

/** Whether it was the caller's mistake: then nothing failed here (conventions for MCP, `rpc.response.status_code`). */
function isCallers(error: unknown): boolean {
  if (!(error instanceof ProtocolError)) return false;
  const { code } = error;
  return code !== ProtocolErrorCode.InternalError && !(code <= -32_000 && code >= -32_099);
}

/** How a call ended that has an answer, in the words of both sides; a task that was made of it, and a question, come again. */
function outcomeOf({ isError, resultType }: Result): "ok" | "tool_error" | "suspended" | "task" {
  if (resultType === "input_required") return "suspended";
  if (resultType === "task") return "task";
  return isError === true ? "tool_error" : "ok";
}

/**
 * Answers a request inside its span, a child of the one that its `_meta` names, so that what a handler starts belongs to it; and
 * counts tool calls. Where nobody registered telemetry this is a call of `run`.
 */
export function traced(
  service: Service,
  method: string,
  params: Readonly<Record<string, unknown>>,
  exchange: Exchange,
  run: () => Promise<Result>,
): Promise<Result> {
  if (!openTelemetryApi()) return run();
  const { serverName, content } = service;
  const isCall = method === "tools/call";
  const { tools, prompts } = service.registry;
  const names = isCall ? tools : method === "prompts/get" ? prompts : undefined;
  const named = String(params.name);
  const known = names?.has(named) === true;
  const began = performance.now();
  const ended = (outcome: string): void => {
    if (isCall) countCall({ side: "server", server: serverName, tool: known ? named : undefined, outcome, began });
  };
  const about = (): SpanAbout => {
    const target = TARGETS[method];
    const isRead = method === "resources/read";
    const name = target && (isRead ? addressAttribute(params.uri) : named.slice(0, MAX_NAME));
    return {
      // addresses, and tools and prompts that there are not, may be any number
      name: known ? `${method} ${named}` : method,
      kind: "server",
      meta: exchange.meta,
      words: content,
      expected: isCallers,
      attributes: {
        "mcp.method.name": method,
        "mcp.protocol.version": exchange.era === "modern" ? MODERN_REVISION : LEGACY_REVISION,
        "jsonrpc.request.id": String(exchange.requestId).slice(0, MAX_NAME),
        "tenon.server": serverName,
        ...(target && name !== undefined && { [target]: name }),
        ...(isCall && { "gen_ai.operation.name": "execute_tool" }),
        ...(exchange.sessionId !== undefined && { "mcp.session.id": sessionAttribute(exchange.sessionId) }),
        ...transportOf(exchange),
        ...(isCall && content && { "gen_ai.tool.call.arguments": content(params.arguments ?? {}) }),
      },
    };
  };
  return inSpan(about, async (span) => {
    try {
      const result = await run();
      const outcome = outcomeOf(result);
      ended(outcome);
      if (isCall) span?.set({ "tenon.outcome": outcome });
      if (outcome === "tool_error") span?.fail("tool_error");
      if (isCall && content) span?.set({ "gen_ai.tool.call.result": content(result.content) });
      return result;
    } catch (error) {
      ended(exchange.signal.aborted ? "cancelled" : "error");
      if (error instanceof ProtocolError) span?.set({ "rpc.response.status_code": String(error.code) });
      throw error;
    }
  });
}
