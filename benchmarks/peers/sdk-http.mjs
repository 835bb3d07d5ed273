// SDK v2 as its documentation wires it: a server built for every request, behind toNodeHandler.
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { flag } from "../lib/flag.mjs";
import { announce, INFO, tools } from "../lib/tools.mjs";

const count = Number(flag("tools", 1));
const handler = createMcpHandler(() => {
  const server = new McpServer(INFO);
  for (const tool of tools(z, count)) {
    server.registerTool(tool.name, { description: tool.description, inputSchema: tool.input }, tool.run);
  }
  return server;
});
const http = createServer(toNodeHandler(handler));
http.keepAliveTimeout = 60_000;
http.listen(0, "127.0.0.1", () => announce(http.address().port));
