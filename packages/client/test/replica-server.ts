// One replica as a process of its own: `node … <file> <what it does when it is asked to spend>`. Effects are lines of the file.
import { appendFileSync } from "node:fs";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { listen } from "./servers.ts";

const [, , file = "", spends = "answers"] = process.argv;

function make(): McpServer {
  const server = new McpServer({ name: "kb", version: "1.0.0" });
  const input = { inputSchema: z.object({ id: z.string() }) };
  const text = (value: string) => ({ content: [{ type: "text" as const, text: value }] });
  server.registerTool("look", { ...input, annotations: { readOnlyHint: true } }, ({ id }) => text(`child saw ${id}`));
  server.registerTool("spend", input, async ({ id }) => {
    appendFileSync(file, `${id}\n`);
    if (spends === "hangs") await new Promise(() => {});
    return text(`child spent ${id}`);
  });
  return server;
}

const handler = createMcpHandler(make, { legacy: "reject" });
const { url } = await listen((request) => handler.fetch(request));
process.stdout.write(`${url}\n`);
