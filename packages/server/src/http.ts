import {
  type AuthInfo,
  createMcpHandler,
  hostHeaderValidationResponse,
  isInitializeRequest,
  isLegacyRequest,
  localhostAllowedHostnames,
  type McpHttpHandler,
  originValidationResponse,
  readRequestBody,
} from "@modelcontextprotocol/server";
import type { Caller } from "./context.ts";
import type { Service } from "./dispatch.ts";
import { createProtocol, type Introduction } from "./protocol.ts";
import { LegacySessions, notFound, SESSION_LIMITS, type SessionLimits } from "./sessions.ts";

export interface HttpOptions {
  /** Host names (without port) a request may be addressed to, against DNS rebinding. Default: the loopback names. */
  allowedHosts?: readonly string[];
  /** Host names of pages that may call from a browser. Default: the same as `allowedHosts`. */
  allowedOrigins?: readonly string[];
  /** Bytes of one request body. Default 4 MiB. */
  maxBodyBytes?: number;
  sessions?: Partial<SessionLimits>;
}

/** What the embedding program knows about a request before the protocol does. */
export interface FetchOptions {
  /** Who calls, from a token the program verified. */
  caller?: Caller;
}

/** The HTTP side of a server as one web-standard function. */
export interface HttpSide {
  fetch(request: Request, options?: FetchOptions): Promise<Response>;
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 4 * 1024 * 1024;

function rpcError(status: number, code: number, message: string, headers?: Record<string, string>): Response {
  return Response.json({ jsonrpc: "2.0", id: null, error: { code, message } }, { status, ...(headers && { headers }) });
}

/** The caller inside the SDK's auth slot; the token itself is deliberately not in it. */
function authOf(caller: Caller | undefined): AuthInfo | undefined {
  if (!caller) return undefined;
  return { token: "", clientId: caller.clientId ?? "", scopes: [...caller.scopes], extra: { caller } };
}

/**
 * Streamable HTTP for both eras: stateless requests of 2026-07-28, sessions of 2025-11-25, and stateless answers to legacy
 * requests without a session. Checks Host and Origin first, then the body's size, then hands over one parsed message.
 */
export function createHttpSide(service: Service, introduction: Introduction, options: HttpOptions = {}): HttpSide {
  const hosts = [...(options.allowedHosts ?? localhostAllowedHostnames())];
  const origins = [...(options.allowedOrigins ?? hosts)];
  const maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES;
  const modern: McpHttpHandler = createMcpHandler(({ era }) => createProtocol(service, introduction, era), {
    maxRequestBodySize: maxBodyBytes,
    onerror: (error) => service.log("debug", "request refused", { error }),
  });
  const sessions = new LegacySessions(
    () => createProtocol(service, introduction, "legacy"),
    { ...SESSION_LIMITS, ...options.sessions },
    service.log,
  );

  async function answer(request: Request, caller: Caller | undefined): Promise<Response> {
    const authInfo = authOf(caller);
    const withAuth = authInfo ? { authInfo } : {};
    const session = request.headers.get("mcp-session-id");
    if (request.method === "POST") {
      if (!/^application\/json\b/i.test(request.headers.get("content-type") ?? "")) {
        return rpcError(415, -32000, "Content-Type must be application/json");
      }
      const read = await readRequestBody(request, maxBodyBytes);
      if (read.tooLarge) return rpcError(413, -32000, `The request body is larger than ${maxBodyBytes} bytes`);
      let parsedBody: unknown;
      try {
        parsedBody = JSON.parse(read.text);
      } catch {
        return rpcError(400, -32700, "The request body is not JSON");
      }
      if (await isLegacyRequest(request, parsedBody)) {
        if (session !== null) return sessions.handle(session, request, parsedBody, authInfo as never); // undefined or AuthInfo
        if (isInitializeRequest(parsedBody)) return sessions.open(request, parsedBody, authInfo as never);
      }
      return modern.fetch(request, { parsedBody, ...withAuth });
    }
    if (session !== null && (request.method === "GET" || request.method === "DELETE")) {
      return sessions.has(session) ? sessions.handle(session, request, undefined, authInfo as never) : notFound();
    }
    return rpcError(405, -32000, "Use POST", { Allow: "POST" });
  }

  return {
    async fetch(request, fetchOptions = {}) {
      const refused = hostHeaderValidationResponse(request, hosts) ?? originValidationResponse(request, origins);
      if (refused) return refused;
      try {
        return await answer(request, fetchOptions.caller);
      } catch (error) {
        if (request.signal.aborted) return new Response(null, { status: 499 }); // nobody reads it
        service.log("error", "HTTP request failed", { error });
        return rpcError(500, -32603, "Internal error");
      }
    },
    async close() {
      await Promise.allSettled([modern.close(), sessions.close()]);
    },
  };
}
