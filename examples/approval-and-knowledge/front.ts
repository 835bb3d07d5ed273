/** An HTTP front before a server, as somebody in the middle has one: it writes down what is asked, and may change what is answered. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A front that stands before a server. */
export interface Front {
  readonly url: string;
  /** The methods that were asked for, in order. */
  readonly asked: string[];
  close(): void;
}

/** Puts a front before the server at `target`. */
export async function front(target: string, change: (answer: string) => string = (answer) => answer): Promise<Front> {
  const asked: string[] = [];
  const http = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    if (body) asked.push(JSON.parse(body).method);
    const { host: _host, connection: _connection, "content-length": _length, ...headers } = request.headers;
    const { method = "POST" } = request;
    const answer = await fetch(target, { method, headers: headers as Record<string, string>, ...(body && { body }) });
    const text = change(await answer.text());
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "application/json" });
    response.end(text);
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const { port } = http.address() as AddressInfo; // it listens on TCP
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    asked,
    close() {
      http.close();
      http.closeAllConnections();
    },
  };
}
