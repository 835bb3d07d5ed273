// A server of both eras written straight on node:http: the same fast other side for every client that is measured.
// --ports=K listens on K ports in one process, --delay=ms waits before every answer, --tools=N, --era=legacy knows the older
// revision only.
import { createServer } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { flag } from "../lib/flag.mjs";
import { announce, INFO, tools } from "../lib/tools.mjs";
import { LEGACY, MODERN } from "../lib/wire.mjs";

const delay = Number(flag("delay", 0));
const legacy = flag("era") === "legacy";
const list = tools(z, Number(flag("tools", 1))).map(({ name, description, input }) => ({
  name,
  description,
  inputSchema: z.toJSONSchema(input, { io: "input" }),
}));
const final = { resultType: "complete" };
const listed = { ttlMs: 0, cacheScope: "private", ...final };
const capabilities = { tools: {} };

/** The result of a request, or undefined for a method there is not. */
function answer({ method, params }, modern) {
  switch (method) {
    case "initialize":
      return { protocolVersion: LEGACY, capabilities, serverInfo: INFO };
    case "server/discover":
      return legacy ? undefined : { supportedVersions: [MODERN], capabilities, serverInfo: INFO, ...listed };
    case "tools/list":
      return { tools: list, ...(modern && listed) };
    case "tools/call": {
      const { a, b } = params.arguments;
      return { content: [{ type: "text", text: String(a + b) }], ...(modern && final) };
    }
  }
}

async function serve(request, response) {
  if (request.method !== "POST") return response.writeHead(405).end();
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const message = JSON.parse(Buffer.concat(chunks).toString());
  if (delay > 0) await wait(delay);
  if (message.id === undefined) return response.writeHead(202).end();
  const result = answer(message, request.headers["mcp-protocol-version"] === MODERN);
  const error = { code: -32601, message: "Method not found" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: message.id, ...(result ? { result } : { error }) });
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  response.writeHead(result ? 200 : 404, headers).end(body);
}

const listening = Array.from({ length: Number(flag("ports", 1)) }, async () => {
  const server = createServer(serve);
  server.keepAliveTimeout = 60_000;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address().port;
});
announce((await Promise.all(listening)).join(","));
