import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { endpointOf, forget } from "../../src/connection/verdicts.ts";
import {
  complete,
  perform,
  type Stub,
  type StubBehavior,
  type StubReply,
  type StubRequest,
  SUBSCRIPTION_ID,
  toRequest,
} from "./behavior.ts";

type Json = Record<string, unknown>;

/** A behaviour with what only HTTP has. */
export interface HttpBehavior extends StubBehavior {
  /** Sees every HTTP request first; `true` says that it answered. */
  onHttp?: (
    req: IncomingMessage,
    res: ServerResponse,
    body: string,
  ) => boolean | undefined | Promise<boolean | undefined>;
  /** Listen on this port, for a server that comes back, or on a path, for a unix socket. */
  at?: number | string;
  /** Makes the HTTP server; for TLS. */
  server?: (handler: (req: IncomingMessage, res: ServerResponse) => void) => Server;
}

export interface HttpStub extends Stub {
  readonly config: { url: string };
  readonly url: string;
  readonly port: number;
  /** Sessions of the older revision so far. */
  readonly sessions: number;
  /** Forgets all sessions: requests with one get 404. */
  forget(): void;
  /** Every HTTP request so far, whatever its method. */
  readonly hits: readonly {
    readonly method: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
  }[];
  /** Cuts all sockets. */
  cut(): void;
}

function headersOf(req: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(req.headers).map(([name, value]) => [name, String(value)]));
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/**
 * A server over HTTP on 127.0.0.1 that speaks raw JSON-RPC.
 *
 * @example
 * const stub = await stubHttp({ onCall: (_, reply) => reply.http(503, { "retry-after": "1" }) });
 * const client = createClient({ servers: { s: stub.config } });
 */
export async function stubHttp(behavior: HttpBehavior = {}): Promise<HttpStub> {
  const era = behavior.era ?? "modern";
  const requests: StubRequest[] = [];
  const hits: { method: string; path: string; headers: Record<string, string> }[] = [];
  const sockets = new Set<Socket>();
  const sessions = new Map<string, number>();
  const gets = new Set<ServerResponse>();
  const listening = new Map<ServerResponse, string | number>();
  const asked = new Map<unknown, (answer: Json) => void>();
  let opened = 0;
  let begun = 0;
  let asks = 0;

  const event = (res: ServerResponse, message: object) => {
    if (!res.headersSent) res.writeHead(200, { "content-type": "text/event-stream" });
    if (!res.writableEnded) res.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
  };
  const final = (res: ServerResponse, message: object, headers: Record<string, string> = {}) => {
    if (res.headersSent) {
      event(res, message);
      res.end();
    } else {
      res.writeHead(200, { "content-type": "application/json", ...headers });
      res.end(JSON.stringify({ jsonrpc: "2.0", ...message }));
    }
  };

  const replyTo = (request: StubRequest, res: ServerResponse, headers: Record<string, string>): StubReply => {
    const gone = new AbortController();
    res.on("close", () => res.writableFinished || gone.abort());
    return {
      result: (value) => final(res, { id: request.id, result: complete(era, request.method, value) }, headers),
      error: (code, message, data) => final(res, { id: request.id, error: { code, message, data } }, headers),
      notify: (method, params) => event(res, { method, params }),
      ask: (method, params) => {
        const id = `ask-${++asks}`;
        event(res, { id, method, params });
        return new Promise((resolve) => asked.set(id, resolve));
      },
      raw: (bytes) => void res.write(bytes),
      end: () => void res.end(),
      die: () => void res.socket?.destroy(),
      http: (status, more = {}, body = "") => {
        res.writeHead(status, { ...headers, ...more });
        res.end(body);
      },
      stream: () => void res.writeHead(200, { "content-type": "text/event-stream", ...headers }).flushHeaders(),
      stderr: () => {},
      signal: gone.signal,
    };
  };

  const post = (message: Json, headers: Record<string, string>, res: ServerResponse) => {
    if (message.method === undefined) {
      const answer = message.result ?? message.error;
      asked.get(message.id)?.(answer as Json); // JSON-RPC: an answer has one of the two
      res.writeHead(202).end();
      return;
    }
    const id = headers["mcp-session-id"] ?? "";
    const request = toRequest(message, requests, { headers, connection: sessions.get(id) ?? 0 });
    requests.push(request);
    if (era === "legacy" && request.method !== "initialize" && !sessions.has(id)) {
      const [status, text] = id ? [404, "Session not found"] : [400, "Bad Request: Server not initialized"];
      res.writeHead(status, { "content-type": "application/json" });
      res.end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32_000, message: text }, id: null }));
      return;
    }
    const more: Record<string, string> = {};
    if (era === "legacy" && request.method === "initialize") {
      more["mcp-session-id"] = randomUUID();
      sessions.set(more["mcp-session-id"], ++begun);
    }
    const reply = replyTo(request, res, more);
    if (
      request.method === "subscriptions/listen" &&
      request.id !== undefined &&
      !behavior.on?.[request.method] &&
      era === "modern"
    ) {
      listening.set(res, request.id);
      res.on("close", () => listening.delete(res));
      const { notifications } = request.params;
      return reply.notify("notifications/subscriptions/acknowledged", {
        notifications,
        _meta: { [SUBSCRIPTION_ID]: request.id },
      });
    }
    if (request.id === undefined && !behavior.on?.[request.method]) return void res.writeHead(202).end();
    void perform(behavior, request, reply);
  };

  const handle = async (req: IncomingMessage, res: ServerResponse) => {
    const headers = headersOf(req);
    hits.push({ method: req.method ?? "", path: req.url ?? "", headers });
    const body = await bodyOf(req).catch(() => undefined);
    if (body === undefined || (await behavior.onHttp?.(req, res, body))) return;
    if (req.method === "POST") return post(JSON.parse(body), headers, res);
    const known = sessions.has(headers["mcp-session-id"] ?? "");
    if (era === "modern" || !known) return void res.writeHead(known || era === "modern" ? 405 : 404).end();
    if (req.method === "DELETE") {
      sessions.delete(headers["mcp-session-id"] ?? "");
      return void res.writeHead(200).end();
    }
    // nothing is kept to be sent again
    if (headers["last-event-id"]) return void res.writeHead(405).end();
    gets.add(res);
    res.on("close", () => gets.delete(res));
    res.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  };

  const server = (behavior.server ?? createServer)((req, res) => void handle(req, res).catch(() => res.destroy()));
  server.keepAliveTimeout = 60_000;
  server.on("connection", (socket) => {
    opened++;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  if (typeof behavior.at === "string") server.listen(behavior.at);
  else server.listen(behavior.at ?? 0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? ((address as AddressInfo).port ?? 0) : 0; // null only before listening
  const url = `http://127.0.0.1:${port}/mcp`;
  // another stub of this file may have had the port, and be remembered by it
  if (behavior.at === undefined) forget(endpointOf({ url }));

  return {
    config: { url },
    url,
    port,
    requests,
    hits,
    count: (method) => requests.filter((request) => request.method === method).length,
    get opened() {
      return opened;
    },
    get open() {
      return sockets.size;
    },
    get listeners() {
      return listening.size;
    },
    get sessions() {
      return begun;
    },
    forget: () => sessions.clear(),
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
    push: (method, params = {}) => {
      for (const res of gets) event(res, { method, params });
      for (const [res, id] of listening)
        event(res, { method, params: { ...params, _meta: { [SUBSCRIPTION_ID]: id } } });
    },
    cutListeners: () => {
      for (const res of [...listening.keys(), ...gets]) res.socket?.destroy();
    },
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}
