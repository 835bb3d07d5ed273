import { META } from "@tenon/core";
import type { Caller, TenonServer } from "../src/index.ts";

/** The interesting parts of any answer. */
export interface RawAnswer {
  result?: {
    resultType?: string;
    requestState?: string;
    inputRequests?: Record<string, { method: string; params: Record<string, unknown> & { message: string } }>;
    content?: { text: string }[];
    structuredContent?: unknown;
    isError?: boolean;
    messages?: { content: { text: string } }[];
    contents?: { text: string }[];
    _meta?: Record<string, unknown>;
  };
  error?: { code: number; message: string; data?: { reason?: string; requiredCapabilities?: unknown } };
}

export interface RawOptions {
  capabilities?: object;
  idempotencyKey?: string;
  caller?: Caller;
  signal?: AbortSignal;
}

/** One request of the modern era to a server's `fetch`, and its answer. */
export async function post(
  server: TenonServer,
  method: string,
  params: Record<string, unknown>,
  options: RawOptions = {},
): Promise<RawAnswer> {
  const name = params.name ?? params.uri;
  const request = new Request("http://127.0.0.1/mcp", {
    method: "POST",
    headers: {
      host: "127.0.0.1",
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      "mcp-name": String(name),
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": options.capabilities ?? {
            elicitation: { form: {}, url: {} },
            sampling: {},
            roots: {},
          },
          ...(options.idempotencyKey !== undefined && { [META.idempotencyKey]: options.idempotencyKey }),
        },
      },
    }),
    ...(options.signal && { signal: options.signal }),
  });
  const response = await server.fetch(request, options.caller ? { caller: options.caller } : {});
  const text = await response.text();
  // a call that sent notifications is answered as a stream: its last message is the answer
  const last = text.startsWith("{")
    ? text
    : text
        .split("\n")
        .findLast((line) => line.startsWith("data: {"))
        ?.slice(6);
  return JSON.parse(last ?? "{}") as RawAnswer;
}

/** A retry that answers every question by its message. */
export function answering(asked: RawAnswer, script: Record<string, unknown>): Record<string, unknown> {
  return {
    requestState: asked.result?.requestState,
    inputResponses: Object.fromEntries(
      Object.entries(asked.result?.inputRequests ?? {}).flatMap(([key, { params }]) =>
        Object.hasOwn(script, params?.message ?? "") ? [[key, script[params?.message ?? ""]]] : [],
      ),
    ),
  };
}

export const value = (content: unknown): object => ({ action: "accept", content: { value: content } });
export const textOf = (answer: RawAnswer): string => answer.result?.content?.[0]?.text ?? "";
export const messages = (answer: RawAnswer): string[] =>
  Object.values(answer.result?.inputRequests ?? {}).map(({ params }) => params?.message);
