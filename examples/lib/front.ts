import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TenonServer } from "@tenon/server";

/** A message that passed the front. */
export interface Seen {
  readonly direction: "→" | "←";
  readonly message: Record<string, unknown>;
}

/** An HTTP front before a server, for looking at the wire. */
export interface Front {
  readonly url: string;
  readonly seen: readonly Seen[];
  close(): void;
}

/** Sends an answer on as it comes, and notes each message in it: a JSON body, or the events of a stream. */
async function relay(answer: Response, response: ServerResponse, note: (text: string) => void): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  const stream = answer.headers.get("content-type")?.startsWith("text/event-stream");
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of answer.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const lines = stream ? text.split("\n") : [];
    if (stream) text = lines.pop() ?? "";
    for (const line of lines) if (/^data: ?\S/.test(line)) note(line.slice(5));
    response.write(chunk);
  }
  if (text.trim()) note(text);
  response.end();
}

/**
 * Puts an HTTP front before `server.fetch` that writes down every message.
 * @param era `"legacy"` makes the server look like one that knows only 2025-11-25: it does not understand `server/discover`
 */
export async function front(server: TenonServer, era: "modern" | "legacy"): Promise<Front> {
  const seen: Seen[] = [];
  const note = (direction: Seen["direction"]) => (text: string) => {
    seen.push({ direction, message: JSON.parse(text) });
  };
  const http = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    if (body) note("→")(body);
    if (era === "legacy" && body.includes('"server/discover"')) {
      const { id } = JSON.parse(body);
      const error = { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } };
      await relay(Response.json(error, { status: 404 }), response, note("←"));
      return;
    }
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]);
    const answer = await server.fetch(
      new Request(`http://127.0.0.1${request.url}`, {
        method: request.method ?? "POST",
        headers,
        ...(body && { body }),
        signal: gone.signal,
      }),
    );
    await relay(answer, response, note("←"));
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const { port } = http.address() as AddressInfo; // it listens on TCP
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    seen,
    close() {
      http.close();
      http.closeAllConnections();
    },
  };
}
