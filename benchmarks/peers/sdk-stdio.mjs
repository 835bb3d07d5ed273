// SDK v2 over stdio as documented.
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { INFO, tools } from "../lib/tools.mjs";

serveStdio(() => {
  const server = new McpServer(INFO);
  for (const tool of tools(z, 10)) {
    server.registerTool(tool.name, { description: tool.description, inputSchema: tool.input }, tool.run);
  }
  return server;
});
