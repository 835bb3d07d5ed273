// Tenon over stdio.
// biome-ignore lint/correctness/noUndeclaredDependencies: the build of this checkout, found in the folder above
import { createServer } from "@tenon/server";
import { flag } from "../lib/flag.mjs";
import { INFO, tools } from "../lib/tools.mjs";

const server = createServer(INFO);
for (const { name, description, input, run } of tools(Number(flag("tools", 10)))) {
  server.tool(name, { description, input }, run);
}
await server.run(import.meta);
