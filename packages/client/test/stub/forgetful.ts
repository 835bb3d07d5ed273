// A program that lists the tools of a server and never closes its client.
import { createClient } from "../../src/index.ts";

const client = createClient({ servers: { s: { url: process.argv[2] ?? "" } } });
const tools = await client.listTools();
// until its stream is open
await new Promise((resolve) => setTimeout(resolve, 500));
process.stdout.write(`listed ${tools.length}\n`);
