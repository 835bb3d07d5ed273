import { request as httpRequest } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { urlToHttpOptions } from "node:url";
import type { FetchOptions, TenonServer } from "../src/index.ts";

/** A request as bytes, so that it may be as wrong as one likes. */
export interface Raw {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

/** What came back, reduced to what both serving paths must agree on. */
export interface Answer {
  status: number;
  /** Every message of the body, whether it came as one JSON value or as a stream. */
  messages: unknown[];
  text: string;
  headers: Record<string, string>;
}

const PREFIX = "io.modelcontextprotocol/";
export const META = {
  version: `${PREFIX}protocolVersion`,
  capabilities: `${PREFIX}clientCapabilities`,
  info: `${PREFIX}clientInfo`,
  level: `${PREFIX}logLevel`,
};

export const envelope = (more: object = {}): Record<string, unknown> => ({
  [META.version]: "2026-07-28",
  [META.info]: { name: "raw", version: "1" },
  [META.capabilities]: {},
  ...more,
});

/** A well-formed request of the modern era; `headers` and `message` may spoil it. */
export function modern(
  method: string,
  params: Record<string, unknown> = {},
  { headers = {}, meta = {}, message = {} }: { headers?: Record<string, string>; meta?: object; message?: object } = {},
): Raw {
  const name = [params.name, params.uri, params.taskId].find((given) => typeof given === "string");
  return {
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(typeof name === "string" && { "mcp-name": name }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: envelope(meta) }, ...message }),
  };
}

/** A well-formed request of the legacy era. */
export function legacy(
  method: string,
  params: Record<string, unknown> = {},
  { headers = {}, message = {} }: { headers?: Record<string, string>; message?: object } = {},
): Raw {
  return {
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-11-25",
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params, ...message }),
  };
}

/** The request that opens a legacy session. */
export const initialize = (capabilities: object = {}, meta: object = {}): Raw =>
  legacy("initialize", {
    protocolVersion: "2025-11-25",
    capabilities,
    clientInfo: { name: "raw", version: "1" },
    _meta: meta,
  });

/** The headers of a request in the session that an answer to {@link initialize} opened. */
export const sessionOf = ({ headers }: Pick<Answer, "headers">): Record<string, string> => ({
  "mcp-session-id": headers["mcp-session-id"] ?? "",
});

/** The messages of a body: of a stream of events, or of one JSON value. */
export function messagesOf(contentType: string | undefined, text: string): unknown[] {
  if (text === "") return [];
  if (contentType?.startsWith("text/event-stream")) {
    const data = text.split("\n").filter((line) => line.startsWith("data: ") && line.length > 6);
    return data.map((line) => JSON.parse(line.slice(6)));
  }
  return [JSON.parse(text)];
}

/** Sends over a socket: to an address, or to what node's own client takes for one. */
export function overSocket(to: string | RequestOptions, raw: Raw, signal?: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const place = typeof to === "string" ? urlToHttpOptions(new URL(to)) : to;
    const request = place.protocol === "https:" ? httpsRequest : httpRequest;
    const sent = request(
      { ...place, method: raw.method ?? "POST", headers: raw.headers ?? {}, ...(signal && { signal }) },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (part) => {
          text += part;
        });
        response.on("error", reject);
        response.on("end", () => {
          const headers = Object.fromEntries(
            Object.entries(response.headers).map(([key, value]) => [key, String(value)]),
          );
          const messages = messagesOf(headers["content-type"], text);
          resolve({ status: response.statusCode ?? 0, messages, text, headers });
        });
      },
    );
    sent.on("error", reject);
    sent.end(raw.body);
  });
}

/** Hands over as a web request, past any socket. */
export async function overFetch(
  server: Pick<TenonServer, "fetch">,
  raw: Raw,
  { signal, ...known }: FetchOptions & { signal?: AbortSignal } = {},
): Promise<Answer> {
  const request = new Request("http://127.0.0.1/mcp", {
    method: raw.method ?? "POST",
    headers: { host: "127.0.0.1", ...raw.headers },
    ...(raw.body !== undefined && { body: raw.body }),
    ...(signal && { signal }),
  });
  const response = await server.fetch(request, known);
  const text = await response.text();
  const headers = Object.fromEntries(response.headers);
  return { status: response.status, messages: messagesOf(headers["content-type"], text), text, headers };
}
