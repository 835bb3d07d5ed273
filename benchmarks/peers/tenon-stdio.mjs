// Tenon over stdio.
// biome-ignore lint/correctness/noUndeclaredDependencies: the build of this checkout, found in the folder above
import { createServer } from "@tenon/server";
import { z } from "../../node_modules/zod/index.js"; // the copy its packages use, as in a project of its own
import { INFO, tools } from "../lib/tools.mjs";

const server = createServer(INFO);
for (const { name, description, input, run } of tools(z, 10)) {
  server.tool(name, { description, input }, run);
}
await server.run(import.meta);
