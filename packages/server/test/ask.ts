import type { Caller, TenonServer } from "../src/index.ts";
import { legacy, META, modern, overFetch } from "./raw-requests.ts";

/** The interesting parts of any answer. */
export interface Reply {
  result?: Record<string, unknown> & {
    resultType?: string;
    requestState?: string;
    inputRequests?: Record<string, { method: string; params: Record<string, unknown> & { message: string } }>;
    content?: { type: string; text: string }[];
    isError?: boolean;
    messages?: { content: { text: string } }[];
    contents?: { text: string }[];
    _meta?: Record<string, unknown>;
  };
  error?: { code: number; message: string; data?: Record<string, unknown> & { reason?: string } };
}

/** Any server, whatever its lifespan. */
type Asked = Pick<TenonServer, "fetch">;

export interface Asking {
  caller?: Caller;
  /** Default `"modern"`; `"legacy"` asks without a session. */
  era?: "modern" | "legacy";
  /** Default: a client that can be asked everything. */
  capabilities?: object;
  idempotencyKey?: string;
  signal?: AbortSignal;
  /** Besides those every request has; modern era only. */
  headers?: Record<string, string>;
}

const ABLE = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** Sends one request to a server in this process, without a socket, as a caller with a verified token or as nobody. */
export async function ask(
  server: Asked,
  method: string,
  params: Record<string, unknown> = {},
  { caller, era = "modern", capabilities = ABLE, idempotencyKey, signal, headers = {} }: Asking = {},
): Promise<Reply> {
  const { _meta, ...given } = params;
  const meta = {
    [META.capabilities]: capabilities,
    ...(idempotencyKey !== undefined && { "dev.tenon/idempotency-key": idempotencyKey }),
    ...(_meta as object), // whatever a test gives, spread
  };
  const raw = era === "modern" ? modern(method, given, { meta, headers }) : legacy(method, params);
  const { messages, text } = await overFetch(server, raw, { ...(caller && { caller }), ...(signal && { signal }) });
  const reply = (messages as Reply[]).findLast((message) => "result" in message || "error" in message);
  if (!reply) throw new Error(`no response in ${text}`);
  return reply;
}

/** Calls a tool. */
export function call(server: Asked, name: string, args: unknown = {}, options: Asking = {}): Promise<Reply> {
  return ask(server, "tools/call", { name, arguments: args }, options);
}

/** The text of a tool's answer. */
export function said(reply: Reply): string {
  return reply.result?.content?.map((block) => block.text).join("\n") ?? `error: ${reply.error?.message}`;
}

/** What an answer asks, in order. */
export const questions = (reply: Reply): string[] =>
  Object.values(reply.result?.inputRequests ?? {}).map(({ params }) => params?.message);

/** An accepted answer to a question for one value. */
export const value = (content: unknown): object => ({ action: "accept", content: { value: content } });

/** A retry that answers every question by its message. */
export function answering(asked: Reply, script: Record<string, unknown>): Record<string, unknown> {
  return {
    requestState: asked.result?.requestState,
    inputResponses: Object.fromEntries(
      Object.entries(asked.result?.inputRequests ?? {}).flatMap(([key, { params }]) =>
        Object.hasOwn(script, params?.message ?? "") ? [[key, script[params?.message ?? ""]]] : [],
      ),
    ),
  };
}

/** The names a list shows. */
export async function listed(
  server: Asked,
  kind: "tools" | "prompts" | "resources" | "resourceTemplates",
  options: Asking = {},
): Promise<string[]> {
  const method = kind === "resourceTemplates" ? "resources/templates/list" : `${kind}/list`;
  const { result } = await ask(server, method, {}, options);
  const items = (result?.[kind] ?? []) as Array<{ name: string; uri?: string; uriTemplate?: string }>;
  return items.map((item) => item.uri ?? item.uriTemplate ?? item.name);
}

export const alice: Caller = { subject: "alice", scopes: ["orders:read"], claims: {} };
export const root: Caller = { subject: "root", scopes: ["orders:read", "orders:refund"], claims: { role: "admin" } };
