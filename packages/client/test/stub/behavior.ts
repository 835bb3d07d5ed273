import type { Era } from "@tenon/core";

type Json = Record<string, unknown>;

/** One message that a client sent. */
export interface StubRequest {
  readonly method: string;
  readonly params: Json;
  /** Absent on a notification. */
  readonly id: string | number | undefined;
  /** Lower-case names; empty over stdio. */
  readonly headers: Readonly<Record<string, string>>;
  /** Which child process (from 1) or which legacy session (from 1; 0 before it has one) it came over. */
  readonly connection: number;
  /** How many messages with this method came so far, this one included. */
  readonly nth: number;
}

/** What a handler can do besides returning a result. A handler that returns nothing and uses none of it stays silent. */
export interface StubReply {
  result(value: Json): void;
  error(code: number, message: string, data?: unknown): void;
  /** A notification before the answer; over HTTP it makes the answer an event stream. */
  notify(method: string, params?: Json): void;
  /** A request to the client (older revision only); resolves to its answer's result or error. */
  ask(method: string, params: Json): Promise<Json>;
  /** Bytes as they are: onto standard output, or into the body of the HTTP answer. */
  raw(bytes: string | Uint8Array): void;
  /** Ends the answer without a message: closes standard output, or ends the HTTP body. */
  end(): void;
  /** Exits, or destroys the socket. */
  die(code?: number): void;
  /** The HTTP answer in one; over stdio it does nothing, that is, the stub stays silent. */
  http(status: number, headers?: Record<string, string>, body?: string): void;
  /** Starts the answer as an event stream. Nothing over stdio. */
  stream(): void;
  /** Writes to the standard error of the child process. Nothing over HTTP. */
  stderr(text: string): void;
  /** Aborted when the client cancels: by notification, or by leaving the answer. */
  readonly signal: AbortSignal;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a handler may be a function without a return
export type StubHandler = (request: StubRequest, reply: StubReply) => Json | void | Promise<Json | void>;

/** What a stub does; the same description runs over stdio and over HTTP. */
export interface StubBehavior {
  /** Default `modern`. The other revision is refused the way such servers do. */
  era?: Era | undefined;
  /** Names, or whole definitions. Default: one tool `t`. */
  tools?: readonly (string | Json)[] | (() => readonly (string | Json)[]);
  capabilities?: Json;
  /** `tools/call`. Default: the arguments as JSON text. */
  onCall?: StubHandler;
  /** Any method, notifications included; goes before everything else. */
  on?: Record<string, StubHandler>;
  /** Milliseconds before every answer. */
  delayMs?: number;
}

export interface Stub {
  /** How a client reaches it: put it under `servers`. */
  readonly config: { url: string } | { command: string; args: string[]; connectTimeoutMs?: number };
  readonly requests: readonly StubRequest[];
  /** Messages with this method so far. */
  count(method: string): number;
  /** Processes started, or sockets opened, so far. */
  readonly opened: number;
  /** Processes alive, or sockets open, now. */
  readonly open: number;
  /** Open `subscriptions/listen` streams. */
  readonly listeners: number;
  /** Sends a notification outside any request: to every listener, or on every connection of the older revision. */
  push(method: string, params?: Json): void;
  /** Cuts all listening streams (over stdio: tells that they are cancelled). */
  cutListeners(): void;
  close(): Promise<void>;
}

export const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";
const ANNOTATED = new Set(["server/discover", "tools/list", "prompts/list", "resources/list", "resources/read"]);

/** The whole definition of a tool given by its name. */
function toTool(tool: string | Json): Json {
  return typeof tool === "string" ? { name: tool, inputSchema: { type: "object" } } : tool;
}

/** What the revision asks of every result, added where the handler left it out. */
export function complete(era: Era, method: string, result: Json): Json {
  if (era === "legacy") return result;
  const caching = ANNOTATED.has(method) ? { ttlMs: 60_000, cacheScope: "private" } : {};
  return { resultType: "complete", ...caching, ...result };
}

function ownAnswer(behavior: StubBehavior, { method, params }: StubRequest): Json | undefined {
  const era = behavior.era ?? "modern";
  const capabilities = behavior.capabilities ?? { tools: { listChanged: true } };
  const serverInfo = { name: "stub", version: "1.0.0" };
  switch (method) {
    case "server/discover":
      return era === "modern" ? { supportedVersions: ["2026-07-28"], capabilities, serverInfo } : undefined;
    case "initialize":
      return era === "legacy" ? { protocolVersion: "2025-11-25", capabilities, serverInfo } : undefined;
    case "tools/list": {
      const { tools = ["t"] } = behavior;
      return { tools: (typeof tools === "function" ? tools() : tools).map(toTool) };
    }
    case "tools/call":
      return { content: [{ type: "text", text: JSON.stringify(params.arguments ?? {}) }] };
    case "ping":
    case "logging/setLevel":
      return {};
    default:
      return undefined;
  }
}

/** Answers one message. `reply` is the transport's. */
export async function perform(behavior: StubBehavior, request: StubRequest, reply: StubReply): Promise<void> {
  if (behavior.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, behavior.delayMs));
  const handler = behavior.on?.[request.method] ?? (request.method === "tools/call" ? behavior.onCall : undefined);
  if (handler) {
    const value = await handler(request, reply);
    if (value) reply.result(value);
    return;
  }
  if (request.id === undefined) return;
  const own = ownAnswer(behavior, request);
  if (own) reply.result(own);
  else reply.error(-32_601, `Method not found: ${request.method}`);
}

/** A message as `StubRequest`, counted. */
export function toRequest(
  message: Json,
  requests: readonly StubRequest[],
  from: Pick<StubRequest, "headers" | "connection">,
): StubRequest {
  const method = String(message.method);
  return {
    ...from,
    method,
    params: (message.params ?? {}) as Json, // JSON-RPC: an object where it is there
    id: message.id as StubRequest["id"], // JSON-RPC: text or number
    nth: requests.filter((other) => other.method === method).length + 1,
  };
}
