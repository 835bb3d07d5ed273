import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { perform, type StubBehavior, type StubRequest, toRequest } from "./behavior.ts";

/** A stub of the first transport: one event stream for all answers, another address for the requests. */
export interface SseStub {
  readonly url: string;
  readonly requests: readonly StubRequest[];
  /** Streams opened so far. */
  readonly streams: number;
  /** Cuts all streams. */
  cut(): void;
  close(): Promise<void>;
}

/** A server that speaks HTTP+SSE (revision 2024-11-05) and refuses everything newer. */
export async function startSse(behavior: StubBehavior = {}): Promise<SseStub> {
  const requests: StubRequest[] = [];
  const open = new Map<string, ServerResponse>();
  let streams = 0;
  const server = createServer(async (req, res) => {
    const url = new URL(req.url ?? "", "http://x");
    if (req.method === "GET" && url.pathname === "/sse") {
      const id = String(++streams);
      open.set(id, res);
      res.on("close", () => open.delete(id));
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(`event: endpoint\ndata: /messages?id=${id}\n\n`);
      return;
    }
    const stream = open.get(url.searchParams.get("id") ?? "");
    if (req.method !== "POST" || url.pathname !== "/messages" || !stream) return void res.writeHead(405).end();
    let body = "";
    for await (const chunk of req) body += chunk;
    res.writeHead(202).end();
    const headers = Object.fromEntries(Object.entries(req.headers).map(([name, value]) => [name, String(value)]));
    const request = toRequest(JSON.parse(body), requests, { headers, connection: 1 });
    requests.push(request);
    const send = (message: object) =>
      stream.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
    await perform({ era: "legacy", ...behavior }, request, {
      result: (result) => send({ id: request.id, result }),
      error: (code, message) => send({ id: request.id, error: { code, message } }),
      notify: (method, params) => send({ method, params }),
      ask: () => Promise.reject(new Error("not here")),
      raw: (bytes) => void stream.write(bytes),
      end: () => void stream.end(),
      die: () => void stream.socket?.destroy(),
      http: () => {},
      stream: () => {},
      stderr: () => {},
      signal: new AbortController().signal,
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // listening on a port
  return {
    url: `http://127.0.0.1:${port}/sse`,
    requests,
    get streams() {
      return streams;
    },
    cut: () => {
      for (const stream of open.values()) stream.socket?.destroy();
    },
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}
