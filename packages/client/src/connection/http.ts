import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { HttpServerConfig } from "../types.ts";
import { currentExchange } from "./exchange.ts";

/**
 * The SDK lets a single request carry headers but keeps `Authorization` for itself. An interceptor that brings the
 * user's own token needs exactly that one, so it is set here, on the request it belongs to.
 */
const fetchInExchange: typeof fetch = async (input, init) => {
  const exchange = currentExchange();
  const headers = new Headers(init?.headers);
  for (const [name, value] of Object.entries(exchange?.headers ?? {})) {
    if (name.toLowerCase() === "authorization") headers.set(name, value);
  }
  const response = await fetch(input, { ...init, headers });
  if (exchange && init?.method === "POST") {
    exchange.streaming = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") ?? false;
  }
  return response;
};

/** The transport to a server over HTTP; its headers go with every request, and to its own origin only. */
export function httpTransport(config: HttpServerConfig): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(config.url), {
    fetch: fetchInExchange,
    ...(config.headers && { requestInit: { headers: { ...config.headers } } }),
  });
}
