import { isRecord, ProtocolError } from "@tenon/core";
import type { FetchOptions } from "../http/http.ts";

/** A message of JSON-RPC, as it came. */
export type Message = Readonly<Record<string, unknown>>;

/** What the in-memory client needs of a server. */
export interface Fetchable {
  readonly name: string;
  fetch(request: Request, options?: FetchOptions): Promise<Response>;
}

/** One exchange over the server's `fetch`: the seam that HTTP uses, without a socket. */
export interface Post {
  readonly url: string;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetchOptions: FetchOptions;
  readonly signal?: AbortSignal | undefined;
}

/** Header values are ASCII; everything else is wrapped (2026-07-28, Streamable HTTP). */
export function headerValue(value: string): string {
  return /^[\x20-\x7e]*$/.test(value) && value === value.trim() && !value.startsWith("=?base64?")
    ? value
    : `=?base64?${Buffer.from(value).toString("base64")}?=`;
}

/** Arguments that a tool's schema sends as headers too (`x-mcp-header`). */
export function parameterHeaders(schema: unknown, args: unknown): Record<string, string> {
  if (!isRecord(schema) || !isRecord(schema.properties) || !isRecord(args)) return {};
  const headers: Record<string, string> = {};
  for (const [name, property] of Object.entries(schema.properties)) {
    if (!isRecord(property) || !Object.hasOwn(args, name)) continue;
    const value = args[name];
    const header = property["x-mcp-header"];
    if (typeof header === "string" && value !== null && value !== undefined && typeof value !== "object") {
      headers[`mcp-param-${header}`] = headerValue(String(value));
    }
    Object.assign(headers, parameterHeaders(property, value));
  }
  return headers;
}

export async function post(server: Fetchable, { url, body, headers, fetchOptions, signal }: Post): Promise<Response> {
  const request = new Request(url, {
    method: "POST",
    headers: {
      host: new URL(url).host,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
  return server.fetch(request, fetchOptions);
}

/** The messages of an answer in the order they come: one JSON body, or the events of a stream. */
export async function* messages(response: Response): AsyncGenerator<Message> {
  const type = response.headers.get("content-type") ?? "";
  if (!type.includes("text/event-stream")) {
    const text = await response.text();
    if (text === "") return;
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch (cause) {
      throw new ProtocolError(`The server answered ${response.status} with something that is not JSON: ${text}`, {
        code: "bad_answer",
        cause,
      });
    }
    for (const message of Array.isArray(parsed) ? parsed : [parsed]) if (isRecord(message)) yield message;
    return;
  }
  let buffered = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    buffered += decoder.decode(chunk, { stream: true });
    const events = buffered.split(/\r?\n\r?\n/);
    buffered = events.pop() ?? "";
    for (const event of events) {
      const data = event
        .split(/\r?\n/)
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5).trimStart())
        .join("\n");
      const message: unknown = data === "" ? undefined : JSON.parse(data);
      if (isRecord(message)) yield message;
    }
  }
}

/** The error of an answer as the error a test sees. */
export function rpcError(error: unknown): ProtocolError {
  const { code, message, data } = isRecord(error) ? error : {};
  return new ProtocolError(String(message), {
    code: "rpc_error",
    data: { code: typeof code === "number" ? code : 0, ...(data !== undefined && { data }) },
  });
}
