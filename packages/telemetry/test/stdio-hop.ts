import { createServer } from "@tenon/server";
import { openTelemetry } from "@tenon/telemetry";

// a server on standard input whose spans go where the standard variables say
const telemetry = await openTelemetry({ serviceName: "piped" });
const server = createServer({ name: "piped", version: "1.0.0" });
server.tool("ping", {}, () => "pong");
await server.stdio();
await server.close();
await telemetry.close();
