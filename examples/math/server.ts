import { createServer } from "@tenon/server";
import { z } from "zod";

const pair = z.object({ a: z.int(), b: z.int() });

const server = createServer({ name: "Math", version: "1.0.0" });
server.tool("add", { description: "Adds two integers.", input: pair }, ({ a, b }) => a + b);
server.tool("multiply", { description: "Multiplies two integers.", input: pair }, ({ a, b }) => a * b);
server.tool("echo", { description: "Returns the text.", input: z.object({ text: z.string() }) }, ({ text }) => text);

export default server;
await server.run(import.meta);
