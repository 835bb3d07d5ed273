// A legacy server over HTTP that asks on the stream beside its answers, as servers on SDK v1 do.
import { randomUUID } from "node:crypto";
import { McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { expect, it } from "vitest";
import { z } from "zod";
import { createClient, renderText } from "../src/index.ts";
import { type Listening, listen } from "./servers.ts";

/** Every request for the stream is answered as `stream` says; what is sent on the stream before that is lost. */
async function serverThatAsks(stream: (answer: () => Promise<Response>) => Promise<Response>): Promise<Listening> {
  const server = new McpServer({ name: "asks", version: "1.0.0" });
  const requestedSchema = { type: "object" as const, properties: { ok: { type: "boolean" as const } } };
  server.registerTool("ask", { inputSchema: z.object({}) }, async () => {
    const answer = await server.server.elicitInput({ mode: "form", message: "Sure?", requestedSchema });
    return { content: [{ type: "text", text: `${answer.action} ${answer.content?.ok}` }] };
  });
  server.registerTool("plain", { inputSchema: z.object({}) }, () => ({ content: [{ type: "text", text: "done" }] }));
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID() });
  await server.connect(transport);
  return listen((request) => {
    const answer = () => transport.handleRequest(request);
    return request.method === "GET" ? stream(answer) : answer();
  });
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

it("is heard although its stream takes longer than the first call", async () => {
  const server = await serverThatAsks(async (answer) => {
    await wait(200);
    return answer();
  });
  await using client = createClient({
    servers: { asks: { url: server.url } },
    elicitation: () => ({ action: "accept", content: { ok: true } }),
  });
  const { content } = await client.callTool("asks", "ask", {}, { timeoutMs: 10_000 });
  expect(renderText(content)).toBe("accept true");
  await client.close();
  await server.kill();
});

it("is called all the same when it gives no stream, or never says whether it does", async () => {
  for (const stream of [async () => new Response(null, { status: 405 }), () => new Promise<Response>(() => {})]) {
    const server = await serverThatAsks(stream);
    await using client = createClient({ servers: { asks: { url: server.url } } });
    const { content } = await client.callTool("asks", "plain", {}, { timeoutMs: 10_000 });
    expect(renderText(content)).toBe("done");
    await client.close();
    await server.kill();
  }
});

it("is asked for its stream ever more rarely when it ends each one at once, whatever it wants", async () => {
  let asked = 0;
  const server = await serverThatAsks(async () => {
    asked++;
    return new Response("retry: 0\n\n", { headers: { "content-type": "text/event-stream" } });
  });
  await using client = createClient({ servers: { asks: { url: server.url } } });
  const { content } = await client.callTool("asks", "plain", {}, { timeoutMs: 10_000 });
  expect(renderText(content)).toBe("done");
  await wait(3_000);
  expect(asked).toBeLessThan(8);
  await client.close();
  await server.kill();
});
