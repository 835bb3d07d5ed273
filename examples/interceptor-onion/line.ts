import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A line to `target` that can be bad: it refuses the next tool calls, as many as `failures` says. */
export async function openLine(target: string) {
  const line = { url: "", failures: 0, close: async () => {} };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (body.includes('"tools/call"') && line.failures-- > 0) return response.writeHead(503).end("no line");
    const headers = Object.entries(request.headers).filter(
      ([name]) => !/^(host|connection|content-length)$/.test(name),
    );
    const answer = await fetch(target, {
      method: request.method ?? "GET",
      headers: headers.map(([name, value]): [string, string] => [name, String(value)]),
      ...(body.length > 0 && { body }),
    });
    const type = answer.headers.get("content-type") ?? "application/json";
    response.writeHead(answer.status, { "content-type": type }).end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // a listening TCP server has an address and port
  line.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  line.close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return line;
}
