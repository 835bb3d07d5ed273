import { createServer } from "@tenon/server";
import { z } from "zod";

const pair = z.object({ a: z.number().int(), b: z.number().int() });
const server = createServer({ name: "Math", version: "1.0.0" });
server.tool("add", { description: "Adds two whole numbers.", input: pair }, ({ a, b }) => a + b);
server.tool("multiply", { description: "Multiplies two whole numbers.", input: pair }, ({ a, b }) => a * b);
server.tool("environment", {}, () => `${process.cwd()} ${process.env.GREETING}`);
server.tool("exit", {}, () => {
  setTimeout(() => process.exit(0), 20);
  return "leaving";
});
process.stderr.write("math is here\n");
await server.run(import.meta);
