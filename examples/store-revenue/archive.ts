import { createServer } from "@tenon/server";
import { z } from "zod";

/** Another server that happens to have a tool of the same name. */
const server = createServer({ name: "archive", version: "1.0.0" });
server.tool(
  "read_file",
  { description: "Reads a file of the archive.", input: z.object({ path: z.string() }) },
  ({ path }) => {
    return `archive: ${path}`;
  },
);

export default server;
await server.run(import.meta);
