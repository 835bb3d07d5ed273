// fastmcp (npm) over stdio.
import { FastMCP } from "fastmcp";
import { z } from "zod";
import { INFO, tools } from "../lib/tools.mjs";

const quiet = { debug() {}, error: console.error, info() {}, log() {}, warn() {} };
const server = new FastMCP({ ...INFO, logger: quiet });
for (const { name, description, input, run } of tools(z, 10)) {
  server.addTool({ name, description, parameters: input, execute: run });
}
await server.start({ transportType: "stdio" });
