import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TenonServer } from "@tenon/server";

/** Serves a server over HTTP as one that knows only 2025-11-25: it does not understand `server/discover`. */
export async function serveAsLegacy(server: TenonServer): Promise<{ url: string; close(): Promise<void> }> {
  const http = createHttpServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const answer = body.includes('"server/discover"')
      ? Response.json(
          { jsonrpc: "2.0", id: JSON.parse(body).id, error: { code: -32601, message: "Method not found" } },
          { status: 404 },
        )
      : await server.fetch(
          new Request(`http://127.0.0.1${request.url}`, {
            method: request.method ?? "POST",
            headers: Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
            ...(body && { body }),
            signal: gone.signal,
          }),
        );
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.flushHeaders();
    try {
      for await (const chunk of answer.body ?? []) response.write(chunk);
    } catch {
      // the client left
    }
    response.end();
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const { port } = http.address() as AddressInfo; // it listens on TCP
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
}
