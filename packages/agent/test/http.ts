import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What a local endpoint was asked: the request's address, headers and JSON body. */
export interface Asked {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

export interface LocalEndpoint extends AsyncDisposable {
  readonly origin: string;
  readonly asked: Asked[];
}

/** A local HTTP endpoint that reads JSON and lets `answer` reply. */
export async function localEndpoint(
  answer: (asked: Asked, response: ServerResponse, at: number) => void,
): Promise<LocalEndpoint> {
  const asked: Asked[] = [];
  const server = createServer(async (incoming, response) => {
    let text = "";
    for await (const piece of incoming) text += piece;
    const request = { url: incoming.url ?? "", headers: incoming.headers, body: JSON.parse(text || "{}") };
    asked.push(request);
    answer(request, response, asked.length - 1);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // a TCP server that listens
  return {
    origin: `http://127.0.0.1:${port}`,
    asked,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

export function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
