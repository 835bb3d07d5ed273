import { createRequire } from "node:module";
import { createClient } from "@tenon/client";
import { createServer } from "@tenon/server";

// a server, a client and a call, with nobody who listens: says what of OpenTelemetry was loaded for that
const server = createServer({ name: "plain", version: "1.0.0", logLevel: "error" });
server.tool("ping", {}, () => "pong");
const { url } = await server.listen({ port: 0 });
const client = createClient({ servers: { plain: { url } } });
const result = await client.callTool("plain", "ping");
await client.close();
await server.close();
const loaded = Object.keys(createRequire(import.meta.url).cache).filter((name) =>
  /opentelemetry|[\\/]pino[\\/]/.test(name),
);
const [block] = result.content;
process.stdout.write(JSON.stringify({ text: block?.type === "text" ? block.text : "", loaded }));
