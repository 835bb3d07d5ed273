import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  createMcpHandler,
  inputRequired,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { z } from "zod";

type Fetch = (request: Request) => Promise<Response> | Response;

export interface Listening {
  url: string;
  port: number;
  /** Headers and JSON body of every request so far. */
  requests: { headers: Record<string, string>; body: Record<string, unknown> }[];
  /** Ends at once, with all connections. */
  kill(): Promise<void>;
}

/** Serves a web-standard handler on 127.0.0.1 over node:http. */
export async function listen(fetch: Fetch, port = 0): Promise<Listening> {
  const requests: Listening["requests"] = [];
  const server: Server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const headers = Object.fromEntries(Object.entries(req.headers).map(([key, value]) => [key, String(value)]));
    requests.push({ headers, body: text ? JSON.parse(text) : {} });
    const gone = new AbortController();
    res.on("close", () => gone.abort());
    const init = { method: req.method ?? "GET", headers, signal: gone.signal, ...(text && { body: text }) };
    const response = await fetch(new Request(`http://127.0.0.1${req.url}`, init));
    res.writeHead(response.status, Object.fromEntries(response.headers));
    res.flushHeaders();
    try {
      for await (const chunk of response.body ?? []) res.write(chunk);
    } catch {
      // the client left
    }
    res.end();
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}/mcp`,
    port: address.port,
    requests,
    kill: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      // client and server share this process: let the client's sockets notice
      await wait(30);
    },
  };
}

const text = (value: string) => ({ content: [{ type: "text" as const, text: value }] });
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The tools all servers of these tests share. */
export function makeServer(): McpServer {
  const server = new McpServer({ name: "test", version: "1.0.0" }, { capabilities: { logging: {} } });
  server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, (args) => text(args.text));
  server.registerTool("add", { inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => ({
    ...text(String(a + b)),
    structuredContent: { sum: a + b },
  }));
  server.registerTool("fail", { inputSchema: z.object({}) }, () => ({ ...text("rate limited"), isError: true }));
  server.registerTool("wait", { inputSchema: z.object({ ms: z.number() }) }, async ({ ms }) => {
    await wait(ms);
    return text("waited");
  });
  server.registerTool(
    "work",
    { inputSchema: z.object({ label: z.string(), steps: z.number(), ms: z.number() }) },
    async ({ label, steps, ms }, ctx) => {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      for (let step = 1; step <= steps; step++) {
        await wait(ms);
        if (progressToken !== undefined) {
          const params = { progressToken, progress: step, total: steps, message: label };
          await ctx.mcpReq.notify({ method: "notifications/progress", params });
        }
        await ctx.mcpReq.log("info", { label, step }, "worker");
      }
      return text(label);
    },
  );
  const question = {
    message: "Sure?",
    requestedSchema: {
      type: "object" as const,
      properties: { ok: { type: "boolean" as const, title: "Really" } },
      required: ["ok"],
    },
  };
  server.registerTool("ask", { inputSchema: z.object({}) }, (_, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.confirm as { action: string; content?: { ok: boolean } } | undefined;
    if (!answer) {
      return inputRequired({ inputRequests: { confirm: inputRequired.elicit(question) }, requestState: "state-1" });
    }
    return text(`${answer.action}:${answer.content?.ok}`);
  });
  server.registerTool("sample", { inputSchema: z.object({}) }, (_, ctx) => {
    if (ctx.mcpReq.inputResponses) return text("sampled");
    const messages = [{ role: "user" as const, content: { type: "text" as const, text: "Hello" } }];
    return inputRequired({ inputRequests: { model: inputRequired.createMessage({ messages, maxTokens: 10 }) } });
  });
  server.registerTool("die", { inputSchema: z.object({}) }, () => process.exit(3));
  server.registerTool("env", { inputSchema: z.object({}) }, () => text(JSON.stringify(process.env)));
  server.registerResource("policy", "company://policy", { mimeType: "text/markdown" }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/markdown", text: "# Policy" }],
  }));
  server.registerResource("logo", "company://logo", { mimeType: "image/png" }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: "image/png", blob: Buffer.from([1, 2, 3]).toString("base64") }],
  }));
  server.registerPrompt("hello", { argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Hello ${name}` } }],
  }));
  return server;
}

/** A server of the newer revision; the older one is refused. */
export function modern(port?: number): Promise<Listening> {
  const handler = createMcpHandler(makeServer, { legacy: "reject" });
  return listen((request) => handler.fetch(request), port);
}

/** A server of the older revision with sessions, as most are today; it forgets them when it is started anew. */
export function legacy(port?: number): Promise<Listening> {
  return listen(legacyHandler(), port);
}

export function legacyHandler(make: () => McpServer = makeServer): (request: Request) => Promise<Response> {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  return async (request) => {
    const id = request.headers.get("mcp-session-id");
    const known = id ? sessions.get(id) : undefined;
    if (known) return known.handleRequest(request);
    if (id) return new Response("Session not found", { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (session) => void sessions.set(session, transport),
    });
    await make().connect(transport);
    return transport.handleRequest(request);
  };
}

export { isAlive } from "./stub/stdio.ts";
