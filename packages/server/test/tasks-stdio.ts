import { z } from "zod";
import { createServer } from "../src/index.ts";

const server = createServer({ name: "tasks-stdio", version: "1.0.0", logLevel: "error" });
server.tool("ask", { task: "optional" }, async (_, ctx) => (await ctx.elicit("Sure?", z.boolean())).action);
server.tool("grow", {}, () => {
  server.tool("grown", {}, () => 1);
  return "grown";
});
server.tool("fail", {}, () => {
  throw new Error("no database");
});
await server.run(import.meta);
