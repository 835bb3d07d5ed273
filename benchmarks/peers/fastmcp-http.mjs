// fastmcp (npm), stateless, JSON answers.
import { createServer } from "node:net";
import { FastMCP } from "fastmcp";
import { z } from "zod";
import { flag } from "../lib/flag.mjs";
import { announce, INFO, tools } from "../lib/tools.mjs";

const quiet = { debug() {}, error: console.error, info() {}, log() {}, warn() {} };
const server = new FastMCP({ ...INFO, logger: quiet });
for (const { name, description, input, run } of tools(z, Number(flag("tools", 1)))) {
  server.addTool({ name, description, parameters: input, execute: run });
}
const port = await new Promise((resolve) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const free = probe.address().port;
    probe.close(() => resolve(free));
  });
});
// it greets on standard output, where the parent reads
console.log = () => {};
console.info = () => {};
await server.start({
  transportType: "httpStream",
  httpStream: { port, host: "127.0.0.1", stateless: true, enableJsonResponse: true },
});
announce(port);
